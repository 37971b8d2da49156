"""How many requests of one principal may be in progress: none may hold all connections of a server."""

from __future__ import annotations

from collections import Counter

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.builtin.http.guard import Refusal, refuse

# A quarter of all connections each, and of all WebSockets. An event stream is a GET that stays in progress; calls are
# counted apart, so that a principal whose streams are used up can still call.
MAX_GETS_OF_PRINCIPAL = 128
MAX_CALLS_OF_PRINCIPAL = 128
MAX_SOCKETS_OF_PRINCIPAL = 32


class Shares:
    """Refuses what would exceed the share of a principal. Without tokens callers cannot be told apart."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: Counter[tuple[str, str]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request, or one WebSocket."""
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser):
            await self._app(scope, receive, send)
            return
        kind, most = _kind(scope)
        key = (user.username, kind)
        if self._open[key] >= most:
            await refuse(scope, receive, send, Refusal(503, "Too many requests of one principal; end some of them."))
            return
        self._open[key] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[key] -= 1


def _kind(scope: Scope) -> tuple[str, int]:
    if scope["type"] == "websocket":
        return "WebSockets", MAX_SOCKETS_OF_PRINCIPAL
    return ("streams", MAX_GETS_OF_PRINCIPAL) if scope["method"] == "GET" else ("calls", MAX_CALLS_OF_PRINCIPAL)
