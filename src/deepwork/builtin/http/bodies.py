"""Checks the body of a POST before the SDK reads it: a body that is not a message is answered as on stdio."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyCheck:
    """Answers bodies that are not messages, and passes every other request on unchanged.

    The SDK takes a request whose id has a wrong type for a notification, and its SSE transport writes a traceback for
    a body that it cannot read.
    """

    def __init__(self, app: ASGIApp, path: str, refusal: Callable[[bytes], str | None]) -> None:
        self._app = app
        self._path = path
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Its body must arrive in one piece, as `RequestLimits` passes it on."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(self._path):
            await self._app(scope, receive, send)
            return
        pending: list[Message] = [await receive()]
        if answer := self._refusal(pending[0].get("body", b"")):
            await Response(answer, 400, media_type="application/json")(scope, receive, send)
            return

        async def receive_again() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, receive_again, send)
