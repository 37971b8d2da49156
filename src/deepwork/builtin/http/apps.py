"""Serves what plugins offer over HTTP, without MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from deepwork.builtin.http.app import run_apps
from deepwork.builtin.http.listen import listen_options
from deepwork.builtin.http.plugins import PluginApps
from deepwork.ports.records import PageAddress, ServedApp


def serve_apps(
    apps: Sequence[ServedApp],
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]],
    *,
    host: str,
    port: int,
    allowed_hosts: Iterable[str],
    token_file: Path | None,
    alone: str | None,
    or_free_port: bool,
    listening: Callable[[PageAddress], None] | None,
) -> None:
    """Serve applications until SIGTERM or SIGINT; the options are those of `deepwork.server.apps.serve_apps`."""
    options = replace(listen_options(host, port, allowed_hosts, token_file), or_free_port=or_free_port)
    run_apps(PluginApps(apps, options.tokens, alone=alone), options, lifespan, listening)
