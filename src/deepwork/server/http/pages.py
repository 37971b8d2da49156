"""Pages of plugins, which people open in a browser: they log in with a token, and get a cookie that counts for it."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from deepwork.ports.call import LOCAL
from deepwork.server.http.tokens import Tokens

LOGIN = "login"
LOGOUT = "logout"
CODE_SECONDS = 600.0

_SAFE = ("GET", "HEAD")
_OWN_SITE = (None, "same-origin", "none")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class CookieLogin(NamedTuple):
    """Who has logged in, and what a request that changes something has to carry besides the cookie."""

    principal: str
    csrf_token: str


@dataclass(frozen=True)
class Mount:
    """Where an application with pages is.

    Attributes:
        path: It begins and ends with `/`.
        public: The paths below it that need no login; one that ends with `/` stands for all that begin with it.
    """

    path: str
    public: tuple[str, ...]

    def is_public(self, scope: Scope) -> bool:
        """Say whether a request needs no login: it reads what holds no data."""
        below = scope["path"].removeprefix(self.path)
        return scope["type"] == "http" and scope["method"] in _SAFE and any(map(_covers(below), self.public))

    def is_login(self, scope: Scope) -> bool:
        """Say whether a request is the login itself."""
        return bool(scope["type"] == "http" and scope["path"] == f"{self.path}{LOGIN}" and scope["method"] == "POST")

    def is_logout(self, scope: Scope) -> bool:
        """Say whether a request is the logout."""
        return bool(scope["type"] == "http" and scope["path"] == f"{self.path}{LOGOUT}" and scope["method"] == "POST")


def _covers(below: str) -> Any:
    """Give the test whether a public path stands for this one; no path that leads up again is public."""
    leads_up = ".." in below.split("/")
    return lambda public: below == public or (public.endswith("/") and below.startswith(public) and not leads_up)


class Pages:
    """The pages of a server, and who has logged in to them.

    They always want a token, because every process of the machine reaches the loopback address. A cookie holds what
    only the owner of a token can compute, so it counts until the token does not, also when the server starts anew.

    Args:
        mounts: Where they are.
        tokens: Who may log in; without them a random token is made, of the principal `local`.

    Attributes:
        random_token: That token; None if there are others.
    """

    def __init__(self, mounts: Iterable[Mount], tokens: Tokens | None) -> None:
        self.mounts = tuple(mounts)
        self.random_token = None if tokens else secrets.token_urlsafe(32)
        self.tokens = tokens or Tokens({self.random_token or "": LOCAL})
        self._cookies = self.tokens.derived(_cookie_value)
        self._codes: dict[str, tuple[str, float]] = {}

    def at(self, path: str) -> Mount | None:
        """Give the pages to which a path belongs."""
        return next((mount for mount in self.mounts if path.startswith(mount.path)), None)

    def one_time_code(self) -> str | None:
        """Make a code that logs in once, for an address that others may see; None if it is open as whom."""
        token = self.tokens.only()
        if token is None:
            return None
        code = secrets.token_urlsafe(32)
        self._codes[code] = token, time.monotonic() + CODE_SECONDS
        return code

    def cookie_login(self, scope: Scope) -> CookieLogin | None:
        """Read who has logged in with the browser that sends a request."""
        value = _cookies(scope).get(_cookie_name(scope))
        principal = self._cookies.principal_of(value.encode()) if value else None
        return CookieLogin(principal, _csrf_token(value)) if principal and value else None

    async def log_in(self, mount: Mount, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a login: the cookie, or 401."""
        token = self._valid_token(await _token_in(Request(scope, receive)))
        if token is None:
            text = "this token is not valid; take it from where the dashboard was started"
            error = {"error": {"message": text, "hint": None}}
            await JSONResponse(error, 401, headers=_HEADERS)(scope, receive, send)
            return
        response = Response(status_code=204, headers=_HEADERS)
        set_cookie(response, mount, scope, _cookie_value(token.encode()))
        await response(scope, receive, send)

    async def log_out(self, mount: Mount, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a logout: the browser forgets the cookie."""
        response = Response(status_code=204, headers=_HEADERS)
        set_cookie(response, mount, scope, "", max_age=0)
        await response(scope, receive, send)

    def _valid_token(self, text: str) -> str | None:
        """Give the token for a token or for a code, which is then used up."""
        token, until = self._codes.pop(text, (text, float("inf")))
        is_valid = time.monotonic() < until and self.tokens.principal_of(token.encode())
        return token if is_valid else None


def is_own_page(scope: Scope, *, has_own_origin: bool) -> bool:
    """Say whether a request comes from a page of this server. Browsers name no Origin where a page reads from its own.

    Args:
        scope: The request.
        has_own_origin: Whether it has an Origin, which then is ours.
    """
    if has_own_origin:
        return True
    site = dict(scope["headers"]).get(b"sec-fetch-site")
    return scope["type"] == "http" and scope["method"] in _SAFE and (site and site.decode("latin-1")) in _OWN_SITE


def is_allowed_to_change(scope: Scope, login: CookieLogin) -> bool:
    """Say whether a request reads only, or has what no foreign page can know."""
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
    """Name the cookie after the port by which the browser came: browsers do not keep those of two ports apart."""
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    port = host.rpartition(":")[2]
    return f"deepwork_{port if port.isdecimal() else 'default'}"


def _cookies(scope: Scope) -> dict[str, str]:
    cookies: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                key, _, text = pair.strip().partition("=")
                cookies.setdefault(key, text)
    return cookies


def _cookie_value(token: bytes) -> str:
    return hmac.new(token, b"deepwork cookie", "sha256").hexdigest()


def _csrf_token(cookie: str) -> str:
    return hmac.new(cookie.encode(), b"deepwork csrf", "sha256").hexdigest()
