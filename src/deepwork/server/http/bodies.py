"""The bodies of POSTs, read before the SDK reads them: what is no message is answered as on stdio."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepwork.server.frames import BadFrame, read_frame


class Bodies:
    """Answers what is no message; lets everything else through as it came.

    The SDK takes requests whose id is of a wrong type for notifications, and writes a traceback for bodies that its
    SSE transport cannot read.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, whose body has to come in one piece."""
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
