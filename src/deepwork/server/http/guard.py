"""Checks Host, Origin and token of every HTTP request before any other layer sees it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.server.http.tokens import Tokens

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_DEFAULT_PORTS = {"http": 80, "https": 443}

log = logging.getLogger("deepwork.server")


class Refusal(NamedTuple):
    """Status and text with which a request is refused.

    With `reads_on` the connection stays open, because some clients read no answer before they have sent their body.
    """

    status: int
    text: str
    reads_on: bool = False


class Guard:
    """Passes on a request that names this server, comes from no foreign page, and has a token if one is required.

    The owner of the token becomes the user of the request. The SDK then lets only the user who opened a session of the
    transport use it.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], tokens: Tokens | None) -> None:
        self._app = app
        self._hosts = LOOPBACK_NAMES | {host.lower() for host in hosts}
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request; WebSockets are refused before they are accepted."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        admitted = self._admit(scope)
        if isinstance(admitted, Refusal):
            log.info("refused a request: %s", admitted.text)
            await refuse(scope, receive, send, admitted)
            return
        if admitted is not None:
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=admitted, scopes=[]))
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> str | Refusal | None:
        """Return the principal of a request (None where no token is required), or why the request is refused."""
        hosts, origins, credentials = (_headers(scope, name) for name in (b"host", b"origin", b"authorization"))
        host = _split(f"//{hosts[0]}") if len(hosts) == 1 else None
        if host is None or host.name not in self._hosts:
            return Refusal(
                421, "Misdirected request: this host name is not allowed; allow it with --allowed-host NAME."
            )
        if origins and not (len(origins) == 1 and self._is_ours(origins[0], host, scope)):
            return Refusal(403, "Forbidden: requests of foreign web pages are refused.")
        if self._tokens is None:
            if scope["type"] == "websocket" and not origins:
                return Refusal(403, "Forbidden: a WebSocket needs an Origin, or a token.")
            return None
        scheme, _, token = credentials[0].partition(" ") if len(credentials) == 1 else ("", "", "")
        principal = self._tokens.principal_of(token.strip().encode("latin-1")) if scheme.lower() == "bearer" else None
        return principal or Refusal(401, "Unauthorized: send the header Authorization: Bearer TOKEN with your token.")

    def _is_ours(self, origin: str, host: _Address, scope: Scope) -> bool:
        """True if the Origin's host is allowed and its port is the Host header's or our own listening port."""
        page = _split(origin)
        if page is None or page.scheme not in _DEFAULT_PORTS or page.name not in self._hosts:
            return False
        default = _DEFAULT_PORTS[page.scheme]
        ports = {host.port or default, (scope.get("server") or ("", None))[1]}
        return (page.port or default) in ports


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
