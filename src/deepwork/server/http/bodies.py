"""Checks the body of a POST before the SDK reads it: a body that is not a message is answered as on stdio."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepwork.server.frames import BadFrame, read_frame


class BodyCheck:
    """Answers bodies that are not messages, and passes every other request on unchanged.

    The SDK takes a request whose id has a wrong type for a notification, and its SSE transport writes a traceback for
    a body that it cannot read.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Its body must arrive in one piece, as `RequestLimits` passes it on."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(self._path):
            await self._app(scope, receive, send)
            return
        pending: list[Message] = [await receive()]
        try:
            read_frame(pending[0].get("body", b""))
        except BadFrame as error:
            refusal = Response(error.answer().model_dump_json(exclude_unset=True), 400, media_type="application/json")
            await refusal(scope, receive, send)
            return

        async def receive_again() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, receive_again, send)
