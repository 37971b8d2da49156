"""Pages of plugins, which people open in a browser: they log in with a token, and get a cookie for their login."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from deepwork.builtin.http.login_file import LoginFile
from deepwork.builtin.http.logins import Login, Logins
from deepwork.builtin.http.tokens import Owner, Tokens
from deepwork.ports.call import LOCAL

LOGIN = "login"
LOGOUT = "logout"

_SAFE = ("GET", "HEAD")
_OWN_SITE = (None, "same-origin", "none")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True)
class Mount:
    """The place of an application with pages.

    Attributes:
        path: It begins and ends with `/`.
        plugin: Whose it is.
        public: The paths below it that need no login; `folder/` stands for all that begin with it.
    """

    path: str
    plugin: str
    public: tuple[str, ...]

    def is_public(self, scope: Scope) -> bool:
        """True if a request needs no login: it reads a public path."""
        below = scope["path"].removeprefix(self.path)
        return scope["type"] == "http" and scope["method"] in _SAFE and any(map(_covers(below), self.public))

    def is_login(self, scope: Scope) -> bool:
        """True if a request is the login itself."""
        return bool(scope["type"] == "http" and scope["path"] == f"{self.path}{LOGIN}" and scope["method"] == "POST")

    def is_logout(self, scope: Scope) -> bool:
        """True if a request is the logout."""
        return bool(scope["type"] == "http" and scope["path"] == f"{self.path}{LOGOUT}" and scope["method"] == "POST")


def _covers(below: str) -> Any:
    """Return the test whether a public path stands for this one; no path that leads up again is public."""
    leads_up = ".." in below.split("/")
    return lambda public: below == public or (public.endswith("/") and below.startswith(public) and not leads_up)


class Pages:
    """The pages of a server, and who has logged in to them.

    They always want a token, because every process of the machine reaches the loopback address. A cookie names a login
    that this process holds, so it ends with it.

    Args:
        mounts: Where they are.
        tokens: Who may log in; without them a random token is made, of the person at this machine.

    Attributes:
        random_token: That token; None if there are others.
        is_open: Whether a person can log in: with a token of their own, or because the random one was shown to them.
    """

    def __init__(self, mounts: Iterable[Mount], tokens: Tokens | None) -> None:
        self.mounts = tuple(mounts)
        self.random_token = None if tokens else secrets.token_urlsafe(32)
        self.tokens = tokens or Tokens({self.random_token or "": Owner(LOCAL, is_person=True)})
        self.is_open = tokens is not None
        self.logins = Logins()
        self._login_file: LoginFile | None = None

    def at(self, path: str) -> Mount | None:
        """Return the pages that a path belongs to; None if it belongs to none."""
        return next((mount for mount in self.mounts if path.startswith(mount.path)), None)

    def address_with_token(self, url: str) -> str:
        """Return the address to show in a terminal: with the random token, if there is one."""
        self.is_open = True
        return f"{url}#token={self.random_token}" if self.random_token else url

    def address_for_browser(self, url: str) -> str:
        """Return the address to open in a browser: a file that logs in once, and that only the user can read.

        The arguments of a browser can be read by every user of the machine, so they hold no secret. Without an only
        person to log in it is the address of the pages.

        Raises:
            ConfigError: The user's state folder is not to be used, or the file cannot be written.
        """
        owner = self.tokens.only()
        if owner is None:
            return url
        self.close()
        self._login_file = LoginFile(f"{url}#token={self.logins.code(owner)}")
        self.is_open = True
        return self._login_file.address

    def close(self) -> None:
        """Remove the file of a login that was never begun."""
        if self._login_file:
            self._login_file.remove()
            self._login_file = None

    def login_of(self, scope: Scope) -> Login | None:
        """Return the login of the browser that sends a request."""
        return self.logins.find(_cookies(scope, _cookie_name(scope)))

    async def log_in(self, mount: Mount, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a login: the cookie, or 401."""
        owner = self._owner_of(await _token_in(Request(scope, receive)))
        if owner is None:
            text = "this token is not valid; it may have been used, or be of a server that has ended"
            error = {"error": {"message": text, "hint": "In a terminal: deepwork dashboard --open"}}
            await JSONResponse(error, 401, headers=_HEADERS)(scope, receive, send)
            return
        response = Response(status_code=204, headers=_HEADERS)
        set_cookie(response, mount, scope, self.logins.begin(owner))
        await response(scope, receive, send)

    async def log_out(self, mount: Mount, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a logout: the login ends, and the browser forgets the cookie."""
        if login := self.login_of(scope):
            login.end()
        response = Response(status_code=204, headers=_HEADERS)
        set_cookie(response, mount, scope, "", max_age=0)
        await response(scope, receive, send)

    def _owner_of(self, text: str) -> Owner | None:
        """Return who logs in with a token, or with a code, which is then used up."""
        if owner := self.logins.use_code(text):
            self.close()
            return owner
        return self.tokens.owner_of(text.encode())


def is_own_page(scope: Scope, *, has_own_origin: bool) -> bool:
    """True if a request comes from a page of this server. Browsers send no Origin if a page reads from its own server.

    Args:
        scope: The request.
        has_own_origin: Whether it has an Origin, which then is ours.
    """
    if has_own_origin:
        return True
    site = dict(scope["headers"]).get(b"sec-fetch-site")
    return scope["type"] == "http" and scope["method"] in _SAFE and (site and site.decode("latin-1")) in _OWN_SITE


def is_allowed_to_change(scope: Scope, login: Login) -> bool:
    """True if a request reads only, or has the secret that no foreign page can know."""
    if scope["type"] != "http" or scope["method"] in _SAFE:
        return True
    token = dict(scope["headers"]).get(b"x-csrf-token", b"")
    return hmac.compare_digest(token, login.csrf_token.encode())


def set_cookie(response: Response, mount: Mount, scope: Scope, value: str, **options: Any) -> None:
    """Add the cookie to an answer. It is marked as secure where the page came over TLS, by a proxy."""
    origin = dict(scope["headers"]).get(b"origin", b"")
    response.set_cookie(
        _cookie_name(scope),
        value,
        path=mount.path,
        httponly=True,
        samesite="strict",
        secure=origin.startswith(b"https:"),
        **options,
    )


async def _token_in(request: Request) -> str:
    try:
        token = json.loads(await request.body())["token"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return token if isinstance(token, str) and token.isascii() else ""


def _cookie_name(scope: Scope) -> str:
    """Name the cookie after the port of the request: browsers do not keep the cookies of two ports apart."""
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    port = host.rpartition(":")[2]
    return f"deepwork_{port if port.isdecimal() else 'default'}"


def _cookies(scope: Scope, wanted: str) -> list[str]:
    """Return the values of all cookies of a name: a page of another port can add one before ours."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
    pairs = [pair.strip().partition("=") for value in values for pair in value.split(";")]
    return [text for name, _, text in pairs if name == wanted]
