"""MCP over stdin and stdout, with an end that is always clean.

FastMCP's own stdio server reads in a thread that no signal can end. Here the descriptors are read and
written by the event loop, so closed stdin, SIGTERM and SIGINT end the server at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import anyio
from fastmcp import FastMCP
from mcp.server.stdio import stdio_server

MAX_LINE = 16 * 1024 * 1024
_CHUNK = 256 * 1024


class Wire:
    """The two ends of the protocol, as the SDK's stdio server wants them: lines in, text out."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin = stdin
        self._stdout = stdout

    async def __aiter__(self) -> AsyncIterator[str]:
        """Give line by line until stdin is closed; of a line that is too long, the beginning."""
        pending = bytearray()
        while chunk := await self._read():
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                pending += line
                yield pending[:MAX_LINE].decode("utf-8", "replace")
                pending.clear()
            if len(pending) <= MAX_LINE:
                pending += rest
        if pending:
            yield pending[:MAX_LINE].decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        """Write all of it; wait, without blocking anybody, while the client does not read."""
        view = memoryview(text.encode())
        while view:
            try:
                view = view[os.write(self._stdout, view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdout)

    async def flush(self) -> None:
        """Nothing is held back."""

    async def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._stdin, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._stdin)


def run_stdio(server: FastMCP[Any], stdin: int, stdout: int) -> None:
    """Serve until stdin is closed, or until SIGTERM or SIGINT."""
    blocking = [(descriptor, os.get_blocking(descriptor)) for descriptor in (stdin, stdout)]
    for descriptor, _ in blocking:
        os.set_blocking(descriptor, False)
    try:
        anyio.run(_serve, server, Wire(stdin, stdout))
    finally:
        # From here on nothing is under way that a late signal should end.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        for descriptor, was in blocking:
            os.set_blocking(descriptor, was)


async def _serve(server: FastMCP[Any], wire: Wire) -> None:
    async with anyio.create_task_group() as tasks:
        end_on_signals(tasks.cancel_scope)
        await _speak(server, wire)
        tasks.cancel_scope.cancel()


def end_on_signals(scope: anyio.CancelScope) -> None:
    """Cancel a scope at SIGTERM and SIGINT; further ones do nothing, so that a save is not cut short."""
    import asyncio

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, scope.cancel)


async def _speak(server: FastMCP[Any], wire: Wire) -> None:
    """Run the server on the wire.

    FastMCP has no public way to give it streams, so two private names are used; where they are gone, its own
    stdio server does the work, less nimbly at the end.
    """
    lifespan = getattr(server, "_lifespan_manager", None)
    protocol = getattr(server, "_mcp_server", None)
    if lifespan is None or protocol is None:
        await server.run_stdio_async(show_banner=False)
        return
    async with lifespan(), stdio_server(stdin=wire, stdout=wire) as (read, write):  # type: ignore[arg-type]  # duck-typed
        await protocol.run(read, write, protocol.create_initialization_options())
