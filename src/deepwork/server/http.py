"""MCP over HTTP on this machine."""

from __future__ import annotations

from typing import Any, Literal

import anyio
from fastmcp import FastMCP


def run_http(server: FastMCP[Any], transport: Literal["http", "sse"], port: int) -> None:
    """Serve on loopback, with Host and Origin checked, until SIGTERM or SIGINT."""

    async def serve() -> None:
        await server.run_http_async(
            transport=transport,
            host="127.0.0.1",
            port=port,
            show_banner=False,
            host_origin_protection="auto",
            # Logging stays ours (stdout is for nobody); open event streams do not hold up the end.
            uvicorn_config={"log_config": None, "access_log": False, "timeout_graceful_shutdown": 0},
        )

    anyio.run(serve)
