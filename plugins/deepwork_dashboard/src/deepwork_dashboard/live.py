"""The WebSocket `live`: tells a page what has changed, and from where it goes on after a lost connection."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect

from deepwork.errors import DeepWorkError
from deepwork.ports.call import caller_of
from deepwork_dashboard.changes import Page, Watch, open_watch
from deepwork_dashboard.dashboard import Dashboard
from deepwork_dashboard.runs import Runs

PING_SECONDS = 15.0
# What follows at once, such as the events of one transaction, is told together.
GATHER_SECONDS = 0.03

_TRY_AGAIN = 1013


class Live:
    """The endpoint `live`."""

    def __init__(self, dashboard: Dashboard, runs: Runs) -> None:
        self._dashboard = dashboard
        self._runs = runs

    async def serve(self, socket: WebSocket) -> None:
        """Serve one page until it goes."""
        await socket.accept()
        principal = caller_of(socket.scope).principal
        with suppress(WebSocketDisconnect, OSError):
            try:
                watch = await self._dashboard.context.shared(
                    "deepwork_dashboard.watch", lambda: open_watch(self._dashboard, self._runs)
                )
                async with watch.page(principal) as page, anyio.create_task_group() as tasks:
                    tasks.start_soon(_tell, socket, watch, page)
                    await _wait_for_end(socket)
                    tasks.cancel_scope.cancel()
            except DeepWorkError as error:
                self._dashboard.context.log.warning("a page has to connect again: %s", error.message)
                await socket.close(_TRY_AGAIN, "connect again")


async def _tell(socket: WebSocket, watch: Watch, page: Page) -> None:
    with suppress(WebSocketDisconnect, OSError):
        missed = await watch.since(socket.query_params.get("since"))
        await _send(socket, type="hello", cursor=str(watch.cursor), resumed=missed is not None)
        page.tell(missed or ())
        while True:
            with anyio.move_on_after(PING_SECONDS):
                await page.wait()
                await anyio.sleep(GATHER_SECONDS)
            things = page.take()
            if page.is_dropped:
                await socket.close(_TRY_AGAIN, "connect again")
                return
            if things:
                await _send(socket, type="changes", cursor=str(watch.cursor), things=things)
            else:
                await _send(socket, type="ping")


async def _send(socket: WebSocket, **message: Any) -> None:
    await socket.send_text(json.dumps(message))


async def _wait_for_end(socket: WebSocket) -> None:
    """Read, and ignore, what the page sends until it goes."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        continue
