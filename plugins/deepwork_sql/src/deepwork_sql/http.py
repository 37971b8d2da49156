"""The feed over WebSocket, at `/plugins/sql/events`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from deepwork.api import PluginContext
from deepwork.errors import DeepWorkError
from deepwork.ports.call import caller_of
from deepwork_sql import database
from deepwork_sql.events import CORE, Event, as_mapping

_REFUSED = 1008
_BROKEN = 1011
# A frame that closes a WebSocket has room for so many bytes; with more the reason would be lost.
_MAX_REASON = 123


def feed_app(context: PluginContext) -> Starlette:
    """Make the application that serves the feed."""

    async def events(socket: WebSocket) -> None:
        await socket.accept()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_send_events, context, socket, tasks.cancel_scope.cancel)
            await _wait_for_end(socket)
            tasks.cancel_scope.cancel()

    return Starlette(routes=[WebSocketRoute("/events", events)])


async def _send_events(context: PluginContext, socket: WebSocket, end: Callable[[], None]) -> None:
    """Send one event in each text frame: those after `since`, or from now on."""
    try:
        async with aclosing(_events(context, socket)) as events:
            async for event in events:
                await socket.send_text(json.dumps(as_mapping(event)))
    except DeepWorkError as error:
        await socket.close(_REFUSED, error.message.encode()[:_MAX_REASON].decode(errors="ignore"))
    except WebSocketDisconnect:
        pass
    except Exception:
        context.log.exception("the feed broke")
        await socket.close(_BROKEN, "the server's log says why")
    end()


async def _events(context: PluginContext, socket: WebSocket) -> AsyncGenerator[Event, None]:
    query = socket.query_params
    opened = await database(context)
    since = query.get("since") or await opened.end_of_feed()
    follow = opened.follow(since, source=query.get("source"), workflow_id=query.get("workflow_id"))
    caller = caller_of(socket.scope)
    async with aclosing(follow) as events:
        async for event in events:
            if event.source != CORE or caller.may_see(event.principal):
                yield event
            elif not caller.may_list:
                # It is public that something happens, but an id alone would let its reader go on with a session.
                yield replace(event, workflow_id=None, principal=None, data={})


async def _wait_for_end(socket: WebSocket) -> Any:
    """Read, and ignore, what the client sends until it goes."""
    try:
        while (await socket.receive())["type"] != "websocket.disconnect":
            continue
    except (RuntimeError, WebSocketDisconnect):
        return
