"""MCP over HTTP: FastMCP's application behind our own checks and limits, and a server that ends in order."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from ipaddress import ip_address
from types import FrameType
from typing import Any, Literal, NamedTuple

import anyio
import fastmcp
import uvicorn
from sse_starlette.sse import AppStatus
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.builtin.http.bodies import BodyCheck
from deepwork.builtin.http.guard import Guard, Refusal, refuse
from deepwork.builtin.http.limits import (
    MAX_CONNECTIONS,
    MAX_FRAME,
    MAX_HEADERS,
    MAX_SESSIONS,
    HttpProtocol,
    RequestLimits,
    WebSocketProtocol,
)
from deepwork.builtin.http.listen import ListenOptions
from deepwork.builtin.http.pages import Pages
from deepwork.builtin.http.plugins import PREFIX, PluginApps
from deepwork.builtin.http.sessions import TransportSessions
from deepwork.builtin.http.shares import Shares
from deepwork.errors import ConfigError
from deepwork.foreign import session_managers, session_owners
from deepwork.ports.records import PageAddress, Serving
from deepwork.programs.pending_calls import PendingCalls
from deepwork.programs.process_end import end_process_soon

log = logging.getLogger("deepwork.server")


class OwnApp(NamedTuple):
    """What is served beside the plugins' applications.

    Attributes:
        app: The application; it gets the lifespan.
        path: Where clients find it.
        message_path: Where it takes messages of MCP; None if it takes none.
        body_check: Makes what answers bodies that are not messages; None if no messages are taken.
    """

    app: Starlette
    path: str
    message_path: str | None = None
    body_check: Callable[[ASGIApp], ASGIApp] | None = None


class HttpApplication:
    """The ASGI application: `Guard`, then `Shares`, then `RequestLimits`, then `BodyCheck`, then what is served.

    Args:
        own: What is served beside the plugins' applications.
        options: Who may call.
        apps: The applications of plugins.
    """

    def __init__(self, own: OwnApp, options: ListenOptions, apps: PluginApps) -> None:
        self.path = own.path
        self.pages = apps.pages
        self._app = own.app
        self._apps = apps
        self._message_path = own.message_path
        sessions = TransportSessions(self._count, self._session_owners)
        served: ASGIApp = own.body_check(sessions) if own.body_check else self._count
        self._guarded: ASGIApp = Guard(Shares(RequestLimits(served)), options.allowed_hosts, options.tokens, apps.pages)
        self._calls = PendingCalls()
        self._is_ending = False
        self._beside: anyio.CancelScope | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, one WebSocket, or the lifespan of the application."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._limit_on_startup(send))
        else:
            await self._guarded(scope, receive, send)

    def announced(self, address: str) -> AbstractContextManager[None]:
        """Let it be known where pages are, as long as the context lasts."""
        return self._apps.announced(address)

    async def run_beside(self) -> None:
        """Run what plugins need beside their applications, until `drain`."""
        with anyio.CancelScope() as self._beside:
            await self._apps.run_beside()

    async def drain(self) -> None:
        """Refuse further requests, and wait a moment for the calls that are not answered yet."""
        self._is_ending = True
        if self._beside:
            self._beside.cancel()
        await self._calls.drain()

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_ending:
            await refuse(scope, receive, send, Refusal(503, "The server is ending; call again in a moment."))
        elif self._apps.has(scope["path"]):
            await self._counted(self._apps, scope, receive, send)
        elif scope["type"] == "websocket" and self._message_path and scope["path"].startswith(self._message_path):
            # The SDK's handler of messages would treat the WebSocket as a POST.
            await refuse(scope, receive, send, Refusal(404, "Not found: no WebSocket is served here."))
        else:
            await self._counted(self._app, scope, receive, send)

    async def _counted(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, and let the end of the server wait a moment for the answer to a POST."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await app(scope, receive, send)
            return
        key = object()
        self._calls.add(key)
        try:
            await app(scope, receive, send)
        finally:
            self._calls.discard(key)

    def _limit_on_startup(self, send: Send) -> Send:
        async def send_started(message: Any) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._limit_sessions()
            await send(message)

        return send_started

    def _limit_sessions(self) -> None:
        """Lower the SDK's own limit of open sessions, for which FastMCP has no parameter."""
        for manager in session_managers(self._app.routes):
            manager.max_sessions = MAX_SESSIONS

    def _session_owners(self) -> list[Any]:
        """Return the owners of open sessions."""
        return [owner for manager in session_managers(self._app.routes) for owner in session_owners(manager)]


class _WebServer(uvicorn.Server):
    """Ends in order at SIGTERM and SIGINT. Further signals do nothing, so that a save is not interrupted."""

    def __init__(self, application: HttpApplication) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                lifespan="on",
                http=HttpProtocol,
                ws=WebSocketProtocol,
                ws_max_size=MAX_FRAME,
                h11_max_incomplete_event_size=MAX_HEADERS,
                limit_concurrency=MAX_CONNECTIONS,
                proxy_headers=False,
                log_config=None,  # uvicorn must not replace our logging
                access_log=False,
                timeout_graceful_shutdown=0.1,  # type: ignore[arg-type]  # uvicorn accepts fractions too
            )
        )
        self._application = application

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
        end_process_soon()
        # We close open event streams on purpose from here on; silence uvicorn's errors about them.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._application.drain()
        await super().shutdown(sockets)


def run_http(
    serving: Serving, transport: Literal["http", "sse"], options: ListenOptions, *, stateless: bool = False
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        serving: What is served.
        transport: How clients of MCP connect.
        options: Where to listen, and who may call.
        stateless: Whether nothing is kept between requests.

    Raises:
        ConfigError: The address does not exist, is in use, or may not be used.
    """
    app = serving.server.http_app(transport=transport, stateless_http=stateless, host_origin_protection=False)
    path: str = app.state.path
    message_path = path if transport == "http" else fastmcp.settings.message_path
    own = OwnApp(app, path, message_path, partial(BodyCheck, path=message_path, refusal=serving.refusal))
    _run(HttpApplication(own, options, PluginApps(serving.apps(), options.tokens)), options)


def run_apps(
    apps: PluginApps,
    options: ListenOptions,
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]],
    listening: Callable[[PageAddress], None] | None = None,
) -> None:
    """Serve the applications of plugins alone, until SIGTERM or SIGINT.

    Args:
        apps: The applications.
        options: Where to listen, and who may call.
        lifespan: What goes on meanwhile.
        listening: Called with the address once it can be used; without it stderr has it.

    Raises:
        ConfigError: The address does not exist, is in use, or may not be used.
    """
    own = OwnApp(Starlette(lifespan=lifespan), next(iter(apps.paths()), PREFIX))
    _run(HttpApplication(own, options, apps), options, listening)


def _run(
    application: HttpApplication, options: ListenOptions, listening: Callable[[PageAddress], None] | None = None
) -> None:
    listener = _listen(options)
    web_server = _WebServer(application)
    # sse_starlette would close event streams at the first signal, before pending answers are sent.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
    # This logger repeats every message that it refuses, however long the message is.
    logging.getLogger("mcp.server.sse").setLevel(logging.CRITICAL)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, web_server.handle_exit)
    host, port = listener.getsockname()[:2]
    log.info("listening on %s%s", _address(host, port), application.path)
    # No browser can open the address that means all of them.
    address = _address(options.allowed_hosts[0] if ip_address(host).is_unspecified else host, port)
    try:
        if listening:
            listening(_page_address(address, application.pages))
        else:
            _show_pages(address, application.pages)
        with application.announced(address):
            anyio.run(_serve, web_server, application, listener)
    finally:
        application.pages.close()


async def _serve(web_server: _WebServer, application: HttpApplication, listener: socket.socket) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(application.run_beside)
        await web_server.serve([listener])
        tasks.cancel_scope.cancel()


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _page_address(address: str, pages: Pages) -> PageAddress:
    url = f"{address}{pages.mounts[0].path}" if pages.mounts else address
    return PageAddress(
        url,
        with_token=lambda: pages.address_with_token(url),
        for_browser=lambda: pages.address_for_browser(url),
    )


def _show_pages(address: str, pages: Pages) -> None:
    """Show where pages are that have no other token. Only a terminal is shown the token: logs are kept."""
    if not pages.random_token:
        return
    for mount in pages.mounts:
        if sys.stderr.isatty():
            sys.stderr.write(f"open {pages.address_with_token(f'{address}{mount.path}')}\n")
        else:
            sys.stderr.write(
                f"pages: {address}{mount.path} To log in there, start this server in a terminal or with --token-file; "
                "or run `deepwork dashboard --open` instead.\n"
            )
    sys.stderr.flush()


def _listen(options: ListenOptions) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = _bound(family, (str(address[0]), int(address[1])), or_free_port=options.or_free_port)
        # Connections inherit this option. Without it the rest of an answer waits until its beginning is acknowledged.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"cannot listen on {options.host}:{options.port}: {_reason(error)}",
            hint="Choose another address with --host and --port; port 0 takes a free one.",
        ) from None


def _bound(family: int, address: tuple[str, int], *, or_free_port: bool) -> socket.socket:
    try:
        return socket.create_server(address, family=family)
    except OSError as error:
        if error.errno != errno.EADDRINUSE or not or_free_port:
            raise
        return socket.create_server((address[0], 0), family=family)


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return "this is not a host name"
    return (error.strerror if isinstance(error, socket.gaierror) else None) or os.strerror(error.errno or 0)
