"""MCP over HTTP: our guard and our bounds around what FastMCP serves, on a socket of ours, with an end in order."""

from __future__ import annotations

import logging
import os
import signal
import socket
from types import FrameType
from typing import Any, Literal

import anyio
import fastmcp
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.http import StarletteWithLifespan, StreamableHTTPASGIApp
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.errors import ConfigError
from deepwork.server.drain import InFlight
from deepwork.server.http.bodies import Bodies
from deepwork.server.http.guard import Guard, Refusal, refuse
from deepwork.server.http.limits import (
    MAX_CONNECTIONS,
    MAX_FRAME,
    MAX_HEADERS,
    MAX_SESSIONS,
    Bounds,
    PatientProtocol,
    SocketProtocol,
)
from deepwork.server.http.listen import Doors

log = logging.getLogger("deepwork.server")


class Stack:
    """The application that is served: from the outside in the guard, the bounds, and FastMCP."""

    def __init__(
        self, server: FastMCP[Any], transport: Literal["http", "sse"], doors: Doors, *, stateless: bool = False
    ) -> None:
        self._app: StarletteWithLifespan = server.http_app(
            transport=transport, stateless_http=stateless, host_origin_protection=False
        )
        self.path: str = self._app.state.path
        self._posts = self.path if transport == "http" else fastmcp.settings.message_path
        self._guarded: ASGIApp = Guard(Bounds(Bodies(self._count, self._posts)), doors.names, doors.tokens)
        self._calls = InFlight()
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of any kind."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._starting(send))
        else:
            await self._guarded(scope, receive, send)

    async def drain(self) -> None:
        """Take no further calls, and give those under way a moment."""
        self._is_ending = True
        await self._calls.drain()

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_ending:
            await refuse(scope, receive, send, Refusal(503, "The server is ending; call again in a moment."))
        elif scope["type"] == "websocket" and scope["path"].startswith(self._posts):
            # The SDK's handler of messages would be asked, and take it for a POST.
            await refuse(scope, receive, send, Refusal(404, "Not found: no WebSocket is served here."))
        elif scope["type"] == "http" and scope["method"] == "POST":
            key = object()
            self._calls.add(key)
            try:
                await self._app(scope, receive, send)
            finally:
                self._calls.discard(key)
        else:
            await self._app(scope, receive, send)

    def _starting(self, send: Send) -> Send:
        async def send_started(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._bound_sessions()
            await send(message)

        return send_started

    def _bound_sessions(self) -> None:
        """Lower the SDK's own bound, for which FastMCP has no parameter."""
        for route in self._app.routes:
            manager = getattr(getattr(route, "endpoint", None), "session_manager", None)
            if isinstance(getattr(route, "endpoint", None), StreamableHTTPASGIApp) and manager is not None:
                manager.max_sessions = MAX_SESSIONS


class _WebServer(uvicorn.Server):
    """Ends in order at SIGTERM and SIGINT; further ones do nothing, so that a save is not cut short."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(
            uvicorn.Config(
                stack,
                lifespan="on",
                http=PatientProtocol,
                ws=SocketProtocol,
                ws_max_size=MAX_FRAME,
                h11_max_incomplete_event_size=MAX_HEADERS,
                limit_concurrency=MAX_CONNECTIONS,
                proxy_headers=False,
                log_config=None,  # logging stays ours
                access_log=False,
                timeout_graceful_shutdown=0.3,  # type: ignore[arg-type]  # fractions do
            )
        )
        self._stack = stack

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
        # What is cut off from here on, open event streams above all, is meant to be.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._stack.drain()
        await super().shutdown(sockets)


def run_http(server: FastMCP[Any], transport: Literal["http", "sse"], doors: Doors, *, stateless: bool = False) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigError: The address is not there, in use, or may not be taken.
    """
    listener = _listen(doors)
    stack = Stack(server, transport, doors, stateless=stateless)
    web = _WebServer(stack)
    # It would cut off answers that are still to come.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
    logging.getLogger("mcp.server.sse").setLevel(logging.CRITICAL)  # it repeats what it refuses, however long
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, web.handle_exit)
    host, port = listener.getsockname()[:2]
    log.info("listening on http://%s:%d%s", f"[{host}]" if ":" in host else host, port, stack.path)
    anyio.run(web.serve, [listener])


def _listen(doors: Doors) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            doors.host, doors.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family)
        # Connections inherit it; without it an answer waits for the client's acknowledgement of its beginning.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"cannot listen on {doors.host}:{doors.port}: {_why(error)}",
            hint="Choose another address with --host and --port; port 0 takes a free one.",
        ) from None


def _why(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return "this is no host name"
    return (error.strerror if isinstance(error, socket.gaierror) else None) or os.strerror(error.errno or 0)
