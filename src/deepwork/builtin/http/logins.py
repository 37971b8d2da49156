"""Logins to the pages of a server, held in its memory: each is random, and ends with it, at logout or unused."""

from __future__ import annotations

import secrets
import time
from hashlib import sha256

from deepwork.builtin.http.tokens import Owner

CODE_SECONDS = 600.0
IDLE_SECONDS = 12 * 3600.0
# Of one principal; one more ends the login that was unused longest.
MAX_LOGINS = 100


class Login:
    """One browser in which a person or a program has logged in.

    Attributes:
        principal: Who.
        is_person: Whether it began with a person's token.
        csrf_token: What a request that changes something has to carry besides the cookie.
    """

    def __init__(self, owner: Owner) -> None:
        self.principal, self.is_person = owner
        self.csrf_token = secrets.token_urlsafe(32)
        self.used_at = self.begun_at = time.time()
        self._is_ended = False

    @property
    def is_open(self) -> bool:
        """Whether it still counts."""
        # The time of day goes on while the machine sleeps, which the monotonic clock of Linux does not.
        return not self._is_ended and time.time() - self.used_at < IDLE_SECONDS

    def end(self) -> None:
        """End it, for all requests and WebSockets that it has."""
        self._is_ended = True


class Logins:
    """The logins of a server, by the digests of their cookies, and the codes that begin one."""

    def __init__(self) -> None:
        # Only digests are kept: looking up a secret itself takes a time that depends on it.
        self._logins: dict[bytes, Login] = {}
        self._codes: dict[bytes, tuple[Owner, float]] = {}

    def begin(self, owner: Owner) -> str:
        """Begin a login, and return what its cookie holds."""
        self._forget_ended()
        held = [(login.used_at, key) for key, login in self._logins.items() if login.principal == owner.principal]
        if len(held) >= MAX_LOGINS:
            self._logins.pop(min(held)[1]).end()
        cookie = secrets.token_urlsafe(32)
        self._logins[_digest(cookie)] = Login(owner)
        return cookie

    def find(self, cookies: list[str]) -> Login | None:
        """Return the open login of one of these cookies; None if none has one.

        Other servers of the host can add cookies to the browser's. Of two logins the newer counts: an earlier login of
        another user cannot replace the user's own.
        """
        logins = [login for cookie in cookies if (login := self._logins.get(_digest(cookie))) and login.is_open]
        login = max(logins, key=lambda login: login.begun_at, default=None)
        if login:
            login.used_at = time.time()
        return login

    def code(self, owner: Owner) -> str:
        """Make a code that begins one login of an owner, within some minutes."""
        code = secrets.token_urlsafe(32)
        self._codes[_digest(code)] = owner, time.time() + CODE_SECONDS
        return code

    def use_code(self, code: str) -> Owner | None:
        """Return the owner of the login that a code begins, and forget the code; None if it is unknown or too old."""
        owner, until = self._codes.pop(_digest(code), (None, 0.0))
        return owner if time.time() < until else None

    def _forget_ended(self) -> None:
        self._logins = {key: login for key, login in self._logins.items() if login.is_open}


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
