"""The applications of plugins, each below `/plugins/<plugin>/`, or one alone at `/`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import anyio
from anyio import to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from deepwork.builtin.http.guard import Refusal, refuse
from deepwork.builtin.http.pages import Mount, Pages
from deepwork.builtin.http.tokens import Tokens
from deepwork.errors import DeepWorkError, PluginLoadError
from deepwork.ports.records import ServedApp

PREFIX = "/plugins/"

log = logging.getLogger("deepwork.server")


class PluginApps:
    """Passes a request on to the plugin that its path names. An application is made at its first request.

    Args:
        apps: What plugins offer.
        tokens: Who may log in to pages.
        alone: The plugin whose application is at `/`, and no other anywhere.

    Attributes:
        pages: The pages among them, and who has logged in to these.

    Raises:
        PluginLoadError: A plugin offers two applications.
    """

    def __init__(self, apps: Iterable[ServedApp], tokens: Tokens | None = None, *, alone: str | None = None) -> None:
        self._offers: dict[str, ServedApp] = {}
        for app in apps:
            path = "/" if alone else f"{PREFIX}{app.plugin}/"
            if path in self._offers and app.plugin == self._offers[path].plugin:
                raise PluginLoadError(
                    f"{app.label} offers more than one HttpApp", hint="A plugin has one; mount in it."
                )
            if alone in (None, app.plugin):
                self._offers[path] = app
        mounts = (
            Mount(path, offer.plugin, offer.app.public) for path, offer in self._offers.items() if offer.app.public
        )
        self.pages = Pages(mounts, tokens)
        self._apps: dict[str, ASGIApp] = {}
        self._making = anyio.Lock()

    def paths(self) -> list[str]:
        """List where the applications are."""
        return sorted(self._offers)

    def has(self, path: str) -> bool:
        """True if a path belongs to plugins."""
        return path.startswith(PREFIX) or "/" in self._offers

    @contextmanager
    def announced(self, address: str) -> Iterator[None]:
        """Let it be known where pages are, as long as the block runs, if a person can log in to them."""
        with ExitStack() as stack:
            if self.pages.is_open:
                for mount in self.pages.mounts:
                    served_at = self._offers[mount.path].served_at
                    stack.enter_context(served_at(f"{address}{mount.path}", self.pages.tokens.people))
            yield

    async def run_beside(self) -> None:
        """Run what the applications need beside them, until it is cancelled."""
        async with anyio.create_task_group() as tasks:
            for offer in self._offers.values():
                if offer.app.beside:
                    tasks.start_soon(_logged, offer.app.beside, offer.label)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket."""
        path = next((path for path in self._offers if scope["path"].startswith(path)), None)
        if path is None:
            await refuse(scope, receive, send, Refusal(404, "Not found: no plugin serves this path."))
            return
        mount = self.pages.at(scope["path"])
        if mount and mount.is_login(scope):
            await self.pages.log_in(mount, scope, receive, send)
            return
        if mount and mount.is_logout(scope):
            await self.pages.log_out(mount, scope, receive, send)
            return
        app = await self._app(path)
        if app is None:
            name = self._offers[path].plugin
            await refuse(scope, receive, send, Refusal(500, f"The plugin {name!r} failed; the server's log says why."))
            return
        # As ASGI wants it for a mounted application: `path` stays whole, and `root_path` says where it is mounted.
        await app({**scope, "root_path": f"{scope.get('root_path', '')}{path.rstrip('/')}"}, receive, send)

    async def _app(self, path: str) -> ASGIApp | None:
        async with self._making:
            if path not in self._apps:
                offer = self._offers[path]
                try:
                    self._apps[path] = await to_thread.run_sync(offer.app.app)
                except Exception:
                    log.exception("%s could not make its HTTP application", offer.label)
                    return None
        return self._apps[path]


async def _logged(work: Callable[[], Awaitable[None]], plugin: str) -> None:
    """Run work of a plugin; that it fails ends nothing else."""
    try:
        await work()
    except DeepWorkError as error:
        log.warning("%s: %s", plugin, " ".join(filter(None, [error.message, error.hint])))
    except Exception:
        log.exception("%s has failed beside its HTTP application", plugin)
