"""MCP over HTTP on this machine."""

from __future__ import annotations

import logging
import os
import signal
import socket
from types import FrameType
from typing import Any, Literal

import anyio
import uvicorn
from fastmcp import FastMCP

from deepwork.errors import ConfigError

HOST = "127.0.0.1"

log = logging.getLogger("deepwork.server")


class _WebServer(uvicorn.Server):
    """Ends in order at SIGTERM and SIGINT; further ones do nothing, so that a save is not cut short."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
        # What is cut off from here on, open event streams above all, is meant to be.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


def run_http(server: FastMCP[Any], transport: Literal["http", "sse"], port: int) -> None:
    """Serve on loopback, with Host and Origin checked, until SIGTERM or SIGINT.

    Raises:
        ConfigError: The port is in use or may not be taken.
    """
    listener = _listen(port)
    app = server.http_app(transport=transport, host_origin_protection="auto")
    web = _WebServer(
        uvicorn.Config(
            app,
            lifespan="on",
            log_config=None,  # logging stays ours
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=0.3,  # type: ignore[arg-type]  # fractions do
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, web.handle_exit)
    log.info("listening on http://%s:%d%s", *listener.getsockname(), app.state.path)
    anyio.run(web.serve, [listener])


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {HOST}:{port}: {os.strerror(error.errno or 0)}",
            hint="Choose another port with --port; 0 takes a free one.",
        ) from None
