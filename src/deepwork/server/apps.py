"""Serves what plugins offer over HTTP, without MCP: beside stdio agents, say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deepwork.project.project import Project
from deepwork.server.build import lifespan_of
from deepwork.server.http.app import run_apps
from deepwork.server.http.listen import listen_options


def serve_apps(
    root: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    allowed_hosts: Iterable[str] = (),
    token_file: Path | None = None,
) -> None:
    """Serve the `HttpApp`s of all plugins of a project, until SIGTERM or SIGINT.

    They are where `deepwork serve --transport http` has them, behind the same checks and limits. No tools are served.

    Args:
        root: The project's folder.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        allowed_hosts: Names that a Host header may contain, besides those of the loopback address.
        token_file: Lines `NAME TOKEN`: who may call.

    Raises:
        ConfigError: The project or the address cannot be used, or other machines could call without a token.
        PluginError: A plugin is broken.
    """
    options = listen_options(host, port, allowed_hosts, token_file)
    project = Project(root)
    project.plugins.demand()
    engine = project.engine()
    run_apps(project.http_apps(engine).demand(), options, lifespan_of(engine, project.shared))
