"""The live events: a WebSocket that sends what the feed has of this plugin."""

from __future__ import annotations

import logging
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import parse_qs

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from deepwork.api import PluginContext
from deepwork.errors import DeepWorkError, StorageError
from deepwork_sql import Database, Event
from deepwork_sql.text import dumps
from deepwork_tracking.database import TrackingDatabase
from deepwork_tracking.workflows import SOURCE

PATH = "/events"
MAX_FRAME = 1024 * 1024
# A listener that is so many events behind is dropped. It may connect again, and go on after its last event.
MAX_BEHIND = 1_000
# Few enough that a page of large rows fits into memory.
PAGE = 200
MAX_SHORT = 1_000

_TRY_AGAIN = 1013
_SECONDS_TO_CLOSE = 1.0

log = logging.getLogger("deepwork.plugin.tracking")


def frame_of(event: Event) -> str:
    """Write an event as a message; of a row that is too large only what is short."""
    message = {"id": event.id, "event": event.event, "workflow_id": event.workflow_id, "at": event.at}
    text = dumps({**message, "data": event.data})
    if len(text.encode()) > MAX_FRAME:
        short = {name: value for name, value in event.data.items() if len(dumps(value)) <= MAX_SHORT}
        text = dumps({**message, "data": {**short, "truncated": True}})
    return text


class EventsApp:
    """The ASGI application: one address, for WebSockets."""

    def __init__(self, context: PluginContext) -> None:
        self._database = TrackingDatabase(context)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one listener, or refuse a request."""
        if scope["type"] == "websocket":
            await receive()  # the request to connect
        if scope["type"] != "websocket" or scope["path"].removeprefix(scope.get("root_path", "")) != PATH:
            await _refuse(scope, send, 404, f"Not found: {PATH} is a WebSocket, and there is nothing else.")
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        since, workflow_id = (query.get(name, [None])[0] for name in ("since", "workflow_id"))
        try:
            database = await self._database.opened()
            after = since or await database.end_of_feed()
            await database.feed(after, limit=1)
        except DeepWorkError as error:
            await _refuse(scope, send, 503 if isinstance(error, StorageError) else 400, error.message)
            return
        await send({"type": "websocket.accept"})
        await Connection(database, workflow_id, send).serve(after, receive)


class Connection:
    """One WebSocket: first what the feed already has, then what comes."""

    def __init__(self, database: Database, workflow_id: str | None, send: Any) -> None:
        self._database = database
        self._workflow_id = workflow_id
        self._send = send

    async def serve(self, after: str, receive: Any) -> None:
        """Send the events after a cursor until the listener leaves, or is too far behind."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send_all, after, tasks.cancel_scope)
            while (await receive())["type"] != "websocket.disconnect":
                pass
            tasks.cancel_scope.cancel()

    async def _send_all(self, after: str, whole: anyio.CancelScope) -> None:
        # The listener may leave while something is sent to it.
        with suppress(OSError):
            try:
                await self._send_until_behind(after)
            except DeepWorkError as error:
                log.warning("a listener has to connect again: %s", error.message)
            with anyio.move_on_after(_SECONDS_TO_CLOSE):
                reason = "connect again with the id of the last event as since"
                await self._send({"type": "websocket.close", "code": _TRY_AGAIN, "reason": reason})
        whole.cancel()

    async def _send_until_behind(self, after: str) -> None:
        """Send what the feed has as fast as the listener takes it, then what comes unless too much waits for it."""
        after = await self._catch_up(after)
        waiting, frames = anyio.create_memory_object_stream[str](MAX_BEHIND)
        async with waiting, frames, anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, after, waiting, tasks.cancel_scope)
            # The listener may leave while something is sent to it.
            with suppress(OSError):
                async for text in frames:
                    await self._send_text(text)
            tasks.cancel_scope.cancel()

    async def _follow(self, after: str, waiting: MemoryObjectSendStream[str], scope: anyio.CancelScope) -> None:
        """Offer what comes to the listener; end its scope if it is too far behind, or if the database is away."""
        follow = self._database.follow(after, source=SOURCE, workflow_id=self._workflow_id)
        try:
            async with aclosing(follow) as events:
                async for event in events:
                    waiting.send_nowait(frame_of(event))
        except anyio.WouldBlock:
            log.debug("a listener is %d events behind", MAX_BEHIND)
        except DeepWorkError as error:
            log.warning("a listener has to connect again: %s", error.message)
        scope.cancel()

    async def _catch_up(self, after: str) -> str:
        """Send what the feed has after a cursor, and return the new cursor."""
        while True:
            events = await self._database.feed(after, limit=PAGE, source=SOURCE, workflow_id=self._workflow_id)
            for event in events:
                await self._send_text(frame_of(event))
            if events:
                after = events[-1].id
            if len(events) < PAGE:
                return after

    async def _send_text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})


async def _refuse(scope: Any, send: Any, status: int, text: str) -> None:
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
