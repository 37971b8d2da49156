"""The live events: a WebSocket that sends what the feed has of this plugin."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import anyio
from anyio.abc import TaskGroup

from deepwork.api import DeepWorkError, PluginContext, StorageError
from deepwork_sql import Database, Event
from deepwork_sql.columns import dumps
from deepwork_tracking.records import Records
from deepwork_tracking.workflows import SOURCE

PATH = "/events"
MAX_FRAME = 1024 * 1024
# A listener that is so many events behind is dropped. It may connect again, and go on after the last one that it has.
MAX_BEHIND = 1_000
# Few enough that a page of large rows fits into memory.
PAGE = 200
MAX_SHORT = 1_000

_TRY_AGAIN = 1013
_SECONDS_TO_CLOSE = 1.0

log = logging.getLogger("deepwork.plugin.tracking")


class Frame(NamedTuple):
    """An event as it is sent."""

    id: str
    workflow_id: str | None
    text: str


def frame_of(event: Event) -> Frame:
    """Write an event as a message; of a row that is too large only what is short."""
    message = {"id": event.id, "event": event.event, "workflow_id": event.workflow_id, "at": event.at}
    text = dumps({**message, "data": event.data})
    if len(text.encode()) > MAX_FRAME:
        short = {name: value for name, value in event.data.items() if len(dumps(value)) <= MAX_SHORT}
        text = dumps({**message, "data": {**short, "truncated": True}})
    return Frame(event.id, event.workflow_id, text)


class Listener:
    """What a listener has still to be sent. Its scope is cancelled when it is too far behind."""

    def __init__(self, workflow_id: str | None) -> None:
        self.workflow_id = workflow_id
        self.scope = anyio.CancelScope()
        self._send, self.frames = anyio.create_memory_object_stream[Frame](MAX_BEHIND)

    def offer(self, frame: Frame) -> bool:
        """Take a frame; False if there are too many already."""
        if self.workflow_id in (None, frame.workflow_id):
            try:
                self._send.send_nowait(frame)
            except anyio.WouldBlock:
                return False
        return True

    def close(self) -> None:
        """Forget everything."""
        self._send.close()
        self.frames.close()


class Hub:
    """Reads the feed once for all listeners of a server, and only while there are any."""

    def __init__(self, database: Database, tasks: TaskGroup) -> None:
        self.database = database
        self._tasks = tasks
        self._listeners: set[Listener] = set()
        self._following: anyio.CancelScope | None = None
        self._starting = anyio.Lock()

    @asynccontextmanager
    async def listen(self, workflow_id: str | None) -> AsyncIterator[Listener]:
        """Let a listener have all frames from now on."""
        listener = Listener(workflow_id)
        async with self._starting:
            if self._following is None:
                # Whoever reads the feed after this sees what came before it; what comes later is passed on.
                after = await self.database.end_of_feed()
                self._following = anyio.CancelScope()
                self._tasks.start_soon(self._follow, self._following, after)
            self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            listener.close()
            if not self._listeners and self._following is not None:
                self._following.cancel()
                self._following = None

    async def _follow(self, scope: anyio.CancelScope, after: str) -> None:
        with scope:
            try:
                async with aclosing(self.database.follow(after, source=SOURCE)) as events:
                    async for event in events:
                        self._pass_on(frame_of(event))
            except DeepWorkError as error:
                log.warning("the listeners of events have to connect again: %s", error.message)
            self._following = None
            for listener in self._listeners:
                listener.scope.cancel()

    def _pass_on(self, frame: Frame) -> None:
        for listener in list(self._listeners):
            if not listener.offer(frame):
                self._listeners.discard(listener)
                listener.scope.cancel()


@asynccontextmanager
async def _open_hub(database: Database) -> AsyncIterator[Hub]:
    async with anyio.create_task_group() as tasks:
        yield Hub(database, tasks)
        tasks.cancel_scope.cancel()


class EventsApp:
    """The ASGI application: one address, for WebSockets."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._records = Records(context)

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
            hub = await self._hub()
            after = since or await hub.database.end_of_feed()
            await hub.database.feed(after, limit=1)
        except DeepWorkError as error:
            await _refuse(scope, send, 503 if isinstance(error, StorageError) else 400, error.message)
            return
        await send({"type": "websocket.accept"})
        await Connection(hub, workflow_id, send).serve(after, receive)

    async def _hub(self) -> Hub:
        database = await self._records.database()
        return await self._context.shared("deepwork_tracking.events", lambda: _open_hub(database))


class Connection:
    """One WebSocket: first what the feed already has, then what comes."""

    def __init__(self, hub: Hub, workflow_id: str | None, send: Any) -> None:
        self._hub = hub
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
        after = await self._catch_up(after)
        async with self._hub.listen(self._workflow_id) as listener:
            with listener.scope:
                # What was committed between the last page and now is both in the feed and among the frames.
                sent: set[str] = set()
                await self._catch_up(after, sent)
                async for frame in listener.frames:
                    if frame.id not in sent:
                        await self._send_text(frame)

    async def _catch_up(self, after: str, sent: set[str] | None = None) -> str:
        """Send what the feed has after a cursor, note the ids if they are wanted, and give the new cursor."""
        while True:
            events = await self._hub.database.feed(after, limit=PAGE, source=SOURCE, workflow_id=self._workflow_id)
            for event in events:
                await self._send_text(frame_of(event))
            if sent is not None:
                sent.update(event.id for event in events)
            if events:
                after = events[-1].id
            if len(events) < PAGE:
                return after

    async def _send_text(self, frame: Frame) -> None:
        await self._send({"type": "websocket.send", "text": frame.text})


async def _refuse(scope: Any, send: Any, status: int, text: str) -> None:
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
