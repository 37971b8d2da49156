"""The applications of plugins, each below `/plugins/<plugin>/`."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import anyio
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.errors import PluginLoadError
from deepwork.loading.manager import Provided
from deepwork.ports.records import HttpApp
from deepwork.server.http.guard import Refusal, refuse

PREFIX = "/plugins/"

log = logging.getLogger("deepwork.server")


class PluginApps:
    """Passes a request on to the plugin that its path names. An application is made at its first request.

    Raises:
        PluginLoadError: A plugin offers two applications.
    """

    def __init__(self, apps: Iterable[Provided[HttpApp]]) -> None:
        self._offers: dict[str, Provided[HttpApp]] = {}
        for app in apps:
            if app.by.name in self._offers:
                raise PluginLoadError(f"{app.by} offers more than one HttpApp", hint="A plugin has one; mount in it.")
            self._offers[app.by.name] = app
        self._apps: dict[str, ASGIApp] = {}
        self._making = anyio.Lock()

    def paths(self) -> list[str]:
        """List where the applications are."""
        return [f"{PREFIX}{name}/" for name in sorted(self._offers)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket below `/plugins/`."""
        name = scope["path"].removeprefix(PREFIX).partition("/")[0]
        if name not in self._offers:
            await refuse(scope, receive, send, Refusal(404, "Not found: no plugin serves this path."))
            return
        app = await self._app(name)
        if app is None:
            await refuse(scope, receive, send, Refusal(500, f"The plugin {name!r} failed; the server's log says why."))
            return
        # As ASGI wants it for a mounted application: `path` stays whole, and `root_path` says where it is mounted.
        await app({**scope, "root_path": f"{scope.get('root_path', '')}{PREFIX}{name}"}, receive, send)

    async def _app(self, name: str) -> ASGIApp | None:
        async with self._making:
            if name not in self._apps:
                offer = self._offers[name]
                try:
                    self._apps[name] = await to_thread.run_sync(offer.item.app)
                except Exception:
                    log.exception("%s could not make its HTTP application", offer.by)
                    return None
        return self._apps[name]
