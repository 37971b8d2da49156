"""The token file: a line `NAME TOKEN` for everyone who may call over HTTP, and `NAME TOKEN person` for people."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from deepwork.errors import ConfigError
from deepwork.paths.private import read_private

SHORT = 16
# The word after a token of a person, who logs in to pages; any other token is a program's.
PERSON = "person"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow `Bearer` (RFC 6750)

log = logging.getLogger("deepwork.server")


class Owner(NamedTuple):
    """Whose a token is, and whether a person logs in to pages with it."""

    principal: str
    is_person: bool


class Tokens:
    """The valid tokens, each with its owner."""

    def __init__(self, owners: Mapping[str, Owner]) -> None:
        self._owners = [(token.encode(), owner) for token, owner in owners.items()]

    def owner_of(self, token: bytes) -> Owner | None:
        """Return the owner of a token. Takes the same time for every token, so that none can be guessed by timing."""
        owner = None
        for valid_token, its_owner in self._owners:
            if hmac.compare_digest(valid_token, token):
                owner = its_owner
        return owner

    @property
    def people(self) -> set[str]:
        """The principals in whose name people can log in."""
        return {owner.principal for _, owner in self._owners if owner.is_person}

    def only(self) -> Owner | None:
        """Return the only person, or the only owner; None if there are several."""
        owners = [owner for _, owner in self._owners]
        people = [owner for owner in owners if owner.is_person]
        return next((group[0] for group in (people, owners) if len(group) == 1), None)


def read_tokens(path: Path) -> Tokens:
    """Read a token file; blank lines and lines that begin with `#` are ignored.

    Raises:
        ConfigError: It cannot be read, others may read it, or a line is not `NAME TOKEN` or `NAME TOKEN person`.
    """
    owners: dict[str, Owner] = {}
    for number, line in enumerate(read_private(path, "token file").splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"token file {str(path)!r}, line {number}"
        name, token, *rest = words if len(words) > 1 else ("", "")
        if rest not in ([], [PERSON]) or not _NAME.fullmatch(name) or not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"{where}: not of the form NAME TOKEN, or NAME TOKEN person",
                hint="NAME may contain letters, digits and . _ @ -; for TOKEN use what `openssl rand -hex 32` prints.",
            )
        if token in owners:
            raise ConfigError(f"{where}: this token is used twice", hint="Give every line a token of its own.")
        if len(token) < SHORT:
            log.warning(
                "%s: the token of %s is short; `openssl rand -hex 32` prints one that cannot be guessed", where, name
            )
        owners[token] = Owner(name, is_person=bool(rest))
    if not owners:
        raise ConfigError(
            f"token file {str(path)!r} has no tokens", hint="Write a line NAME TOKEN for everyone who may call."
        )
    return Tokens(owners)
