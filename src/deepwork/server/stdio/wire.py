"""MCP over stdin and stdout, with a clean shutdown.

FastMCP's own stdio server reads in a thread that signals cannot end, and drops lines that it cannot read. This one
reads and writes in the event loop: closed stdin, SIGTERM and SIGINT end it at once, and every line is answered.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp import FastMCP
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData
from mcp_types.jsonrpc import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from deepwork.foreign import stdio_parts
from deepwork.programs.pending_calls import PendingCalls
from deepwork.programs.process_end import end_process_soon
from deepwork.server.frames import MAX_LINE, BadFrame, read_frame

_CHUNK = 256 * 1024
ENDING = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("deepwork.server")


class Wire:
    """Reads messages from stdin and writes messages to stdout, one message a line."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._write_lock = anyio.Lock()
        self._unanswered = PendingCalls()
        self._scope = anyio.CancelScope()

    @asynccontextmanager
    async def streams(
        self,
    ) -> AsyncIterator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    ]:
        """Return the streams that the SDK reads from and writes to."""
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            self._scope = tasks.cancel_scope
            tasks.start_soon(self._read_messages, to_server)
            tasks.start_soon(self._write_messages, from_server)
            yield incoming, outgoing

    async def _read_messages(self, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with to_server:
            async for line in self._lines():
                try:
                    message = read_frame(line)
                except BadFrame as error:
                    log.debug("answered a line that is not a message: %s", error)
                    await self._write(error.answer())
                    continue
                self._note(message)
                await to_server.send(SessionMessage(message))
            end_process_soon()
            await self._unanswered.drain()

    async def _write_messages(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with from_server:
            async for outgoing in from_server:
                await self._write(outgoing.message)
                if isinstance(outgoing.message, JSONRPCResponse | JSONRPCError):
                    self._unanswered.discard(outgoing.message.id)

    def _note(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            request_id = (message.params or {}).get("requestId")
            if isinstance(request_id, str | int):
                self._unanswered.discard(request_id)

    async def _lines(self) -> AsyncIterator[bytes]:
        """Yield each line that is not blank until stdin is closed; of a line that is too long, only the beginning."""
        pending = bytearray()
        while chunk := await self._chunk():
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                pending += line
                if pending.strip():
                    yield bytes(pending)
                pending.clear()
            if len(pending) <= MAX_LINE:
                pending += rest
        if pending.strip():
            yield bytes(pending)

    async def _write(self, message: JSONRPCMessage) -> None:
        """Write a whole message, and let other tasks run while the client does not read.

        If the client has closed its end, no answer can arrive any more, so the server ends.
        """
        view = memoryview(_encoded(message) + b"\n")
        async with self._write_lock:
            while view:
                try:
                    view = view[os.write(self._stdout, view) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._stdout)
                except BrokenPipeError:
                    self._scope.cancel()
                    return

    async def _chunk(self) -> bytes:
        while True:
            try:
                return os.read(self._stdin, _CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._stdin)


def _encoded(message: JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # a plugin returned text with a lone surrogate, for instance
        log.warning("an answer could not be written as JSON in UTF-8: %.200r", message)
        error = ErrorData(code=INTERNAL_ERROR, message="The answer could not be written as JSON in UTF-8")
        return JSONRPCError(jsonrpc="2.0", id=getattr(message, "id", None), error=error).model_dump_json().encode()


def run_stdio(server: FastMCP[Any], stdin: int, stdout: int, *, when_ready: Callable[[], None]) -> None:
    """Serve until stdin is closed, or until SIGTERM or SIGINT.

    Args:
        server: The server.
        stdin: The descriptor to read messages from.
        stdout: The descriptor to write messages to.
        when_ready: Called once either signal ends the server. Before that, a SIGINT may be lost: a shell starts
            background programs so that they ignore it.

    Raises:
        DeepWorkError: This release of FastMCP cannot be served so.
    """
    lifespan, protocol = stdio_parts(server)
    blocking = [(descriptor, os.get_blocking(descriptor)) for descriptor in (stdin, stdout)]
    for descriptor, _ in blocking:
        os.set_blocking(descriptor, False)
    signals = EndSignals()
    try:
        when_ready()
        anyio.run(_serve, partial(_speak, lifespan, protocol, stdin, stdout), signals)
    finally:
        # Everything is closed by now: a late signal would only change the exit code.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        for descriptor, was_blocking in blocking:
            os.set_blocking(descriptor, was_blocking)


async def _serve(speak: Callable[[], Awaitable[None]], signals: EndSignals) -> None:
    async with anyio.create_task_group() as tasks:
        signals.cancel(tasks.cancel_scope)
        await speak()
        tasks.cancel_scope.cancel()


class EndSignals:
    """SIGTERM and SIGINT, from now on: the first one ends the server, and further ones interrupt no save.

    They are handled before there is an event loop: asyncio would cancel its main task at SIGINT, which is lost if
    that has not begun yet.
    """

    def __init__(self) -> None:
        self._arrived = False
        for number in ENDING:
            signal.signal(number, self._note)

    def cancel(self, scope: anyio.CancelScope) -> None:
        """Cancel a scope at a signal, also at an earlier one."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            end_process_soon()
            scope.cancel()

        for number in ENDING:
            loop.add_signal_handler(number, end)
        if self._arrived:
            end()

    def _note(self, *_: object) -> None:
        self._arrived = True


async def _speak(lifespan: Any, protocol: Any, stdin: int, stdout: int) -> None:
    wire = Wire(stdin, stdout)
    async with lifespan(), wire.streams() as (read, write):
        await protocol.run(read, write, protocol.create_initialization_options())
