"""Sessions of the transport: how many one principal may have open, and what the SDK does not answer about them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.builtin.http.guard import Refusal, refuse

# A quarter of all: one principal must not keep the others out.
MAX_OF_PRINCIPAL = 250

_SESSION = b"mcp-session-id"
_LAST_EVENT = b"last-event-id"


class TransportSessions:
    """Refuses a further session to a principal that has its share, and ignores `Last-Event-ID`.

    No events are kept, so none can be sent again; the SDK would give no answer at all to a request for them, while a
    new stream is what the client needs.

    Args:
        app: What is served.
        owners: Gives the owner of every open session, as the SDK keeps them.
    """

    def __init__(self, app: ASGIApp, owners: Callable[[], Collection[Any]]) -> None:
        self._app = app
        self._owners = owners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._exceeds_share(scope):
            await refuse(scope, receive, send, Refusal(503, "Too many sessions of one principal; end some by DELETE."))
            return
        headers = [(name, value) for name, value in scope["headers"] if name != _LAST_EVENT]
        await self._app({**scope, "headers": headers}, receive, send)

    def _exceeds_share(self, scope: Scope) -> bool:
        user = scope.get("user")
        opens = scope["method"] == "POST" and not any(name == _SESSION for name, _ in scope["headers"])
        if not opens or not isinstance(user, AuthenticatedUser):
            return False
        owner = authorization_context(user)
        return [*self._owners()].count(owner) >= MAX_OF_PRINCIPAL
