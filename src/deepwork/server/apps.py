"""Serves what plugins offer over HTTP, without MCP: beside stdio agents, say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from deepwork.engine.engine import Engine
from deepwork.errors import DeepWorkError, UnknownName
from deepwork.loading.transports import transports_of
from deepwork.paths.served_pages import ServedPages
from deepwork.ports.records import HttpApp, PageAddress, ServedApp
from deepwork.project.project import Project
from deepwork.server.build import lifespan_of

log = logging.getLogger("deepwork.server")


def serve_apps(
    root: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Iterable[str] = (),
    token_file: Path | None = None,
    state_store: str | None = None,
    alone: str | None = None,
    or_free_port: bool = False,
    listening: Callable[[PageAddress], None] | None = None,
) -> None:
    """Serve the `HttpApp`s of all plugins of a project, until SIGTERM or SIGINT.

    They are where `deepwork serve --transport http` has them, behind the same checks and limits. No tools are served.

    Args:
        root: The project's folder.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        allowed_hosts: Names that a Host header may contain, besides those of the loopback address.
        token_file: Lines `NAME TOKEN`: who may call.
        state_store: Where sessions are kept; as the configuration says if not given.
        alone: Serve the application of this plugin at `/`, and no other.
        or_free_port: Take a free port if that one is in use.
        listening: Called with the address once it can be used.

    Raises:
        ConfigError: The project or the address cannot be used, or other machines could call without a token.
        PluginError: A plugin is broken, or no transport serves applications.
    """
    project = Project(root)
    project.plugins.demand()
    serve = next((spec.serve_apps for spec in transports_of(project.plugins).values() if spec.serve_apps), None)
    if serve is None:
        raise UnknownName(f"no transport serves the applications of plugins{project.plugins.left_out_text}")
    engine = _engine(project, state_store)
    serve(
        served_apps(project, engine),
        lifespan_of(engine, project.shared),
        host=host,
        port=port,
        allowed_hosts=allowed_hosts,
        token_file=token_file,
        alone=alone,
        or_free_port=or_free_port,
        listening=listening,
    )


def served_apps(project: Project, engine: Engine) -> list[ServedApp]:
    """Return the applications of all plugins of a project.

    Raises:
        PluginError: A plugin is broken.
    """
    return [
        ServedApp(
            provided.by.name, str(provided.by), provided.item, partial(_noted, engine.pages.served, provided.item)
        )
        for provided in project.http_apps(engine).demand()
    ]


@contextmanager
def _noted(served: ServedPages | None, app: HttpApp, url: str, people: Collection[str]) -> Iterator[None]:
    """Let other servers of the project know of pages while they are served. They are served also if that fails."""
    with ExitStack() as notes:
        if served and app.item is not None:
            try:
                notes.enter_context(served.noted(f"{url}{app.item}", people))
            except (OSError, DeepWorkError) as error:
                log.warning("agents are not told of the pages at %s: %s", url, error)
        yield


def _engine(project: Project, state_store: str | None) -> Engine:
    """Make the engine, with the gate whose limits are shown. Pages are served without a reviewer, too."""
    gate = None
    if project.config.quality_gate.enabled:
        try:
            gate = project.gate()
        except DeepWorkError as error:
            log.warning("%s", error.message)
    return project.engine(gate, store=state_store)
