"""Who may call over HTTP: a file of lines `NAME TOKEN`."""

from __future__ import annotations

import hmac
import logging
import os
import re
import stat
from pathlib import Path

from deepwork.errors import ConfigError

MAX_BYTES = 1024 * 1024
SHORT = 16

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may stand behind `Bearer` (RFC 6750)

log = logging.getLogger("deepwork.server")


class Tokens:
    """The tokens that open the door, each with the name of its principal."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = [(token.encode(), name) for token, name in names.items()]

    def principal_of(self, token: bytes) -> str | None:
        """Name the owner of a token, in a time that tells nothing about the others."""
        found = None
        for known, name in self._names:
            if hmac.compare_digest(known, token):
                found = name
        return found


def read_tokens(path: Path) -> Tokens:
    """Read a token file; blank lines and lines that begin with `#` do not count.

    Raises:
        ConfigError: It cannot be read, others may read it, or a line is not `NAME TOKEN`.
    """
    names: dict[str, str] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"token file {str(path)!r}, line {number}"
        if len(words) != 2 or not _NAME.fullmatch(words[0]) or not _TOKEN.fullmatch(words[1]):
            raise ConfigError(
                f"{where}: not of the form NAME TOKEN",
                hint="NAME is of letters, digits and . _ @ -; for TOKEN take what `openssl rand -hex 32` prints.",
            )
        name, token = words
        if token in names:
            raise ConfigError(f"{where}: this token stands there twice", hint="Give every line a token of its own.")
        if len(token) < SHORT:
            log.warning(
                "%s: the token of %s is short; `openssl rand -hex 32` prints one that cannot be guessed", where, name
            )
        names[token] = name
    if not names:
        raise ConfigError(
            f"token file {str(path)!r} names nobody", hint="Write a line NAME TOKEN for everyone who may call."
        )
    return Tokens(names)


def _text(path: Path) -> str:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
                raise ConfigError(f"token file {str(path)!r} is no regular file of at most 1 MiB")
            if found.st_mode & 0o077:
                raise ConfigError(
                    f"token file {str(path)!r} can be read by others (mode {stat.S_IMODE(found.st_mode):04o})",
                    hint=f"Run: chmod 600 {path}",
                )
            return file.read(MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"token file {str(path)!r} is not UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"token file {str(path)!r} cannot be read: {reason}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Open even a FIFO at once."""
    return os.open(path, flags | os.O_NONBLOCK)
