"""The token file: a line `NAME TOKEN` for everyone who may call over HTTP."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Callable
from pathlib import Path

from deepwork.errors import ConfigError
from deepwork.files.private import read_private

SHORT = 16

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow `Bearer` (RFC 6750)

log = logging.getLogger("deepwork.server")


class Tokens:
    """The valid tokens, each with the name of its principal."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = [(token.encode(), name) for token, name in names.items()]

    def principal_of(self, token: bytes) -> str | None:
        """Return the owner of a token. Takes the same time for every token, so that none can be guessed by timing."""
        owner = None
        for valid_token, name in self._names:
            if hmac.compare_digest(valid_token, token):
                owner = name
        return owner

    def derived(self, derive: Callable[[bytes], str]) -> Tokens:
        """Give what is computed of each token, with the same names."""
        return Tokens({derive(token): name for token, name in self._names})

    def only(self) -> str | None:
        """Give the token if there is one only."""
        return self._names[0][0].decode() if len(self._names) == 1 else None


def read_tokens(path: Path) -> Tokens:
    """Read a token file; blank lines and lines that begin with `#` are ignored.

    Raises:
        ConfigError: It cannot be read, others may read it, or a line is not `NAME TOKEN`.
    """
    names: dict[str, str] = {}
    for number, line in enumerate(read_private(path, "token file").splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"token file {str(path)!r}, line {number}"
        if len(words) != 2 or not _NAME.fullmatch(words[0]) or not _TOKEN.fullmatch(words[1]):
            raise ConfigError(
                f"{where}: not of the form NAME TOKEN",
                hint="NAME may contain letters, digits and . _ @ -; for TOKEN use what `openssl rand -hex 32` prints.",
            )
        name, token = words
        if token in names:
            raise ConfigError(f"{where}: this token is used twice", hint="Give every line a token of its own.")
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
