"""The guard in front of everything that HTTP serves: Host, Origin and token, before anybody else sees the request."""

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
    """Why a request goes no further; one that `reads_on` lets its client send the rest, so that it gets to read why."""

    status: int
    text: str
    reads_on: bool = False


class Guard:
    """Lets through what is addressed to this server, comes from no foreign page, and has a token if one is asked for.

    Whoever has a token is known to the SDK as a user from here on, so that a session of the transport can only be
    used with a token of its owner.
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
        """Name the principal of a request, None where no tokens are asked for, or say why it is refused."""
        hosts, origins, credentials = (_headers(scope, name) for name in (b"host", b"origin", b"authorization"))
        host = _split(f"//{hosts[0]}") if len(hosts) == 1 else None
        if host is None or host.name not in self._hosts:
            return Refusal(421, "Misdirected request: this server has another name. --allowed-host NAME gives it one.")
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
        """Say whether a page is one of this server: its name is ours, and its port the one asked for, or ours."""
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
    """Take an origin or a Host header apart; None if it is something else."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    return _Address(parts.scheme, parts.hostname, port)


def _headers(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Answer with a status and a line of text, and end the connection: its body is not waited for."""
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
