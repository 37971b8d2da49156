"""What one client of HTTP may cost: the size and the time of its requests, and how many may be half-open."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from deepwork.server.http.guard import Refusal, refuse

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


class Bounds:
    """Gives a request body `BODY_SECONDS` to arrive, refuses it above `MAX_BODY`, and counts WebSockets.

    Nothing behind it sees a request whose body is not there.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sockets = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request once its body is there, or one WebSocket."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADERS:
            # h11 counts only as long as they are not all there.
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
    """Read a body; None if its sender has gone."""
    # No other form of number gets past h11.
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
    """Give the body that was read, then what else comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


class _Reading(asyncio.Protocol):
    """Ends the connection of a client that for `WRITE_SECONDS` reads nothing of what it was sent."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _too_late: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Begin to wait for the client."""
        super().pause_writing()
        self._too_late = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: it has read."""
        if self._too_late:
            self._too_late.cancel()
        super().resume_writing()


class SocketProtocol(_Reading, WebSocketsSansIOProtocol):
    """A WebSocket that can be refused without complaints in the log."""

    async def send(self, message: Any) -> None:
        """Send; an answer instead of a WebSocket ends the handshake too, which uvicorn does not notice."""
        await super().send(message)
        self.handshake_complete = self.handshake_complete or self.close_sent


class PatientProtocol(_Reading, H11Protocol):
    """HTTP/1.1 whose clients have `HEADER_SECONDS` for their headers.

    A connection waits from its beginning, or the end of an answer, until a request is there with its body. Of too
    many that wait, the one that has waited longest has to go.
    """

    _waiting: ClassVar[dict[PatientProtocol, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; a request that is there is no longer waited for, nor is anything on a WebSocket."""
        super().data_received(data)
        is_there = self._is_asked() and not self.cycle.more_body
        if is_there or self.transport.get_protocol() is not self:
            self._end_wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, if it is not there yet."""
        super().on_response_complete()
        if not self._is_asked() and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_wait()
        super().connection_lost(exc)

    def give_way(self) -> None:
        """End the connection; it no longer counts from now on, not only when the event loop gets to know."""
        self._end_wait()
        self.transport.abort()

    def _is_asked(self) -> bool:
        """Say whether the headers of a request are there that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        self._end_wait()
        if len(self._waiting) >= MAX_WAITING:
            next(iter(self._waiting)).give_way()
        self._waiting[self] = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        # The time of a body is measured where it is read.
        if not self._is_asked():
            self.transport.abort()

    def _end_wait(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()
