"""Checks Host, Origin and token of every HTTP request before any other layer sees it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepwork.builtin.http.logins import Login
from deepwork.builtin.http.pages import Mount, Pages, is_allowed_to_change, is_own_page
from deepwork.builtin.http.tokens import Tokens
from deepwork.ports.inbox import Answerer

LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1"})
LOOPBACK_NAMES = LOOPBACK_ADDRESSES | {"localhost"}

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOGIN_ENDED = 1008

log = logging.getLogger("deepwork.server")


class Refusal(NamedTuple):
    """Status and text of the answer to a refused request.

    With `reads_on` the connection stays open, because some clients read no answer before they have sent their body.
    """

    status: int
    text: str
    reads_on: bool = False


class Guard:
    """Passes on a request that names this server, comes from no foreign page, and has a token if one is required.

    The owner of the token becomes the user of the request. The SDK then lets only the user who opened a session of the
    transport use it. Pages always require a token, except for the login and public paths; their cookie counts as the
    token in requests of our own pages.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], tokens: Tokens | None, pages: Pages) -> None:
        self._app = app
        self._hosts = LOOPBACK_NAMES | {host.lower() for host in hosts}
        self._tokens = tokens
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request; WebSockets are refused before they are accepted."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        mount = self._pages.at(scope["path"])
        admitted = self._admit(scope, mount)
        if isinstance(admitted, Refusal):
            log.info("refused a request: %s", admitted.text)
            await refuse(scope, receive, send, admitted)
            return
        login: Login | None = None
        principal: str | None
        if isinstance(admitted, Login):
            login, principal = admitted, admitted.principal
            send = _while_logged_in(login, send)
        else:
            principal = admitted
        if principal is not None:
            scope = {**scope, "user": AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))}
            if mount:
                scope["state"] = {**scope.get("state", {}), **_state(mount, principal, login)}
        with suppress(_LoginEnded):
            await self._app(scope, receive, send)

    def _admit(self, scope: Scope, mount: Mount | None) -> str | Login | Refusal | None:
        """Return the principal of a request (None where no token is required), or why the request is refused."""
        hosts, origins = _headers(scope, b"host"), _headers(scope, b"origin")
        host = _split(f"//{hosts[0]}") if len(hosts) == 1 else None
        if host is None or host.name not in self._hosts:
            return Refusal(
                421, "Misdirected request: this host name is not allowed; allow it with --allowed-host NAME."
            )
        if origins and not (len(origins) == 1 and self._is_ours(origins[0], host, scope)):
            return Refusal(403, "Forbidden: requests of foreign web pages are refused.")
        if mount:
            return self._admit_to_pages(scope, mount, is_own=is_own_page(scope, has_own_origin=bool(origins)))
        if self._tokens is None:
            if scope["type"] == "websocket" and not origins:
                return Refusal(403, "Forbidden: a WebSocket needs an Origin, or a token.")
            return None
        return _bearer(scope, self._tokens) or _UNAUTHORIZED

    def _admit_to_pages(self, scope: Scope, mount: Mount, *, is_own: bool) -> str | Login | Refusal | None:
        if mount.is_public(scope):
            return None
        if mount.is_login(scope):
            return None if is_own else Refusal(403, "Forbidden: people log in from our own page, with its Origin.")
        if _headers(scope, b"authorization"):
            return _bearer(scope, self._pages.tokens) or _UNAUTHORIZED
        login = self._pages.login_of(scope)
        if login is None:
            return _UNAUTHORIZED
        if not is_own:
            return Refusal(403, "Forbidden: a cookie counts for requests of our own pages alone.")
        if not is_allowed_to_change(scope, login):
            return Refusal(403, "Forbidden: send the header X-CSRF-Token with what the page was told.")
        return login

    def _is_ours(self, origin: str, host: _Address, scope: Scope) -> bool:
        """True if the Origin's host is allowed and its port is the Host header's or our own listening port.

        127.0.0.1 and ::1 are different pages: another user's server may have the same port of the other address.
        """
        page = _split(origin)
        if page is None or page.scheme not in _DEFAULT_PORTS or page.name not in self._hosts:
            return False
        if {page.name, host.name} == LOOPBACK_ADDRESSES:
            return False
        default = _DEFAULT_PORTS[page.scheme]
        ports = {host.port or default, (scope.get("server") or ("", None))[1]}
        return (page.port or default) in ports


_UNAUTHORIZED = Refusal(401, "Unauthorized: send the header Authorization: Bearer TOKEN with your token.")


class _Address(NamedTuple):
    scheme: str
    name: str
    port: int | None


def _split(address: str) -> _Address | None:
    """Parse an origin or a Host header; None if it is neither."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    return _Address(parts.scheme, parts.hostname, port)


def _bearer(scope: Scope, tokens: Tokens) -> str | None:
    """Return the owner of the token that a request has; None if it has none, or more than one."""
    credentials = _headers(scope, b"authorization")
    scheme, _, token = credentials[0].partition(" ") if len(credentials) == 1 else ("", "", "")
    owner = tokens.owner_of(token.strip().encode("latin-1")) if scheme.lower() == "bearer" else None
    return owner.principal if owner else None


class _LoginEnded(OSError):
    """Raised to the application of a plugin, as ASGI has it where the other side is gone."""


def _state(mount: Mount, principal: str, login: Login | None) -> dict[str, Any]:
    """Return what the application of a plugin is told of a request. A program with a token is never a person."""
    by = Answerer(principal=principal, client=mount.plugin if login and login.is_person else None)
    return {"answerer": by, **({"csrf_token": login.csrf_token} if login else {})}


def _while_logged_in(login: Login, send: Send) -> Send:
    """End a WebSocket once its login has ended: a copied cookie would listen on after the logout."""

    async def send_message(message: Message) -> None:
        if message["type"] == "websocket.send" and not login.is_open:
            await send({"type": "websocket.close", "code": _LOGIN_ENDED, "reason": "the login has ended"})
            raise _LoginEnded
        await send(message)

    return send_message


def _headers(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Answer with a status and a line of text, and close the connection without waiting for the rest of the request."""
    body = f"{refusal.text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    if not refusal.reads_on:
        headers.append((b"connection", b"close"))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status == 503:
        headers.append((b"retry-after", b"1"))
    kind = "http.response"
    if scope["type"] == "websocket":
        await receive()  # the request to connect
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
