"""Limits of what HTTP clients may cost: size and time of a request, and how many connections may wait for one."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from deepwork.builtin.http.guard import Refusal, refuse

MAX_BODY = 4 * 1024 * 1024
MAX_HEADERS = 64 * 1024
MAX_FRAME = 1024 * 1024
MAX_CONNECTIONS = 512
MAX_SOCKETS = 128
MAX_WAITING = 128
MAX_SESSIONS = 1000
HEADER_SECONDS = 10
BODY_SECONDS = 30
WRITE_SECONDS = 60


class RequestLimits:
    """Gives a request body `BODY_SECONDS` to arrive, refuses it above `MAX_BODY`, and counts WebSockets.

    The layers behind it see a request only when its whole body has arrived.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request when its body has arrived, or one WebSocket."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
            # h11 limits only incomplete headers; complete ones are checked here.
            await refuse(scope, receive, send, Refusal(431, f"Too large: headers have at most {MAX_HEADERS} bytes."))
            return
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
            return
        try:
            with anyio.fail_after(BODY_SECONDS):
                body = await _body(scope, receive)
        except TimeoutError:
            await refuse(scope, receive, send, Refusal(408, f"Timeout: the body did not arrive in {BODY_SECONDS} s."))
            return
        except _TooLarge:
            refusal = Refusal(413, f"Too large: a body has at most {MAX_BODY} bytes.", reads_on=True)
            await refuse(scope, receive, send, refusal)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sockets >= MAX_SOCKETS:
            await refuse(scope, receive, send, Refusal(503, "Too many WebSockets are open; try again later."))
            return
        self._sockets += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._sockets -= 1


class _TooLarge(Exception):
    pass


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """Read a body; None if the client has disconnected."""
    # `int` cannot fail: h11 has already refused a length that is not a number.
    if any(name == b"content-length" and int(value) > MAX_BODY for name, value in scope["headers"]):
        raise _TooLarge
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise _TooLarge
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return the body that was read, then further messages as they arrive."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


class _WriteTimeout(asyncio.Protocol):
    """Closes the connection of a client that has read nothing of its answer for `WRITE_SECONDS`."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _write_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Start the timer: the client does not read."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer: the client has read."""
        if self._write_timer:
            self._write_timer.cancel()
        super().resume_writing()


class WebSocketProtocol(_WriteTimeout, WebSocketsSansIOProtocol):
    """A WebSocket that can be refused without an error in the log."""

    async def send(self, message: Any) -> None:
        """Send a message. A refusal ends the handshake too; uvicorn does not notice that and would log an error."""
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent


class HttpProtocol(_WriteTimeout, H11Protocol):
    """HTTP/1.1 that gives a client `HEADER_SECONDS` to send the headers of its request.

    A connection counts as waiting from its start, or the end of the last answer, until a request has arrived with its
    body. When more than `MAX_WAITING` wait, the oldest of them is closed.
    """

    _waiting: ClassVar[dict[HttpProtocol, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read; stop waiting when a whole request has arrived, or when the connection has become a WebSocket."""
        super().data_received(data)
        is_complete = self._has_request() and not self.cycle.more_body
        if is_complete or self.transport.get_protocol() is not self:
            self._end_wait()

    def on_response_complete(self) -> None:
        """Start to wait for the next request, if it has not arrived yet."""
        super().on_response_complete()
        if not self._has_request() and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._end_wait()
        super().connection_lost(exc)

    def close_now(self) -> None:
        """Close the connection, and stop counting it at once: `connection_lost` is called only later."""
        self._end_wait()
        self.transport.abort()

    def _has_request(self) -> bool:
        """True if the headers of a request have arrived and its answer is not complete."""
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._end_wait()
        if len(self._waiting) >= MAX_WAITING:
            next(iter(self._waiting)).close_now()
        self._waiting[self] = self.loop.call_later(HEADER_SECONDS, self._on_timeout)

    def _on_timeout(self) -> None:
        # While a body arrives, `RequestLimits` measures the time.
        if not self._has_request():
            self.transport.abort()

    def _end_wait(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()
