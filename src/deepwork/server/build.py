"""Joins the parts of a server."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import FastMCP

from deepwork import __version__
from deepwork.config import load_config, resolve_root
from deepwork.engine.engine import Engine
from deepwork.engine.gate import QualityGate
from deepwork.engine.sessions import StateManager
from deepwork.errors import ConfigError
from deepwork.jobs.catalogue import Catalogue
from deepwork.loading.catalog import by_name, choose
from deepwork.loading.contexts import ContextOf, contexts
from deepwork.loading.manager import PluginManager, Provided
from deepwork.ports.records import StateStoreSpec, ToolSet
from deepwork.server.calls import Calls
from deepwork.server.instructions import join_instructions
from deepwork.server.tools import add_resource, add_tool, named_tools
from deepwork.workspace import Workspace

SELF_REVIEW = "self"

log = logging.getLogger("deepwork.server")


def create_server(
    project_root: str | Path,
    enable_quality_gate: bool = True,  # noqa: FBT001, FBT002 - JOBS-REQ-001.1
    quality_gate_timeout: int = 120,
    quality_gate_max_attempts: int = 3,
    external_runner: str | None = None,
    *,
    tools: Sequence[str] | None = None,
    state_store: str | None = None,
    platform: str | None = None,
    plugins: PluginManager | None = None,
) -> FastMCP[Any]:
    """Make a server for one project. It works in process at once, and closes its store with its lifespan.

    Args:
        project_root: The project's folder; made absolute.
        enable_quality_gate: Whether reviews are held at all.
        quality_gate_timeout: Seconds that an external review may take.
        quality_gate_max_attempts: Failed external reviews after which a step is stuck.
        external_runner: Name of a review runner; None for self-review.
        tools: Names of tool sets to serve; those of the configuration, or all, if not given.
        state_store: Name of the state store; that of the configuration if not given.
        platform: Name of the agent's platform, for plugins that word their answers by it.
        plugins: The plugins; those installed and not blocked by the configuration if not given.

    Raises:
        ConfigError: The project or its configuration cannot be used.
        PluginError: A plugin is broken, or a name is unknown or offered twice.
    """
    config, workspace, remarks = load_config(resolve_root(project_root), os.environ)
    for remark in remarks:
        log.warning(remark)
    if plugins is None:
        plugins = PluginManager(blocked=config.plugins.block, required=config.plugins.require)
    context_of = contexts(config, workspace, platform)
    sources = by_name(
        "job source",
        plugins.job_sources(context_of),
        lambda source: source.name,
    )
    sessions = StateManager(_store(plugins, context_of, state_store or config.state.store), workspace)
    engine = Engine(
        workspace=workspace,
        catalogue=Catalogue(source.item for source in sources.values()),
        sessions=sessions,
        gate=_gate(
            plugins,
            context_of,
            workspace,
            enabled=enable_quality_gate,
            runner=external_runner,
            timeout=quality_gate_timeout,
            max_attempts=quality_gate_max_attempts,
        ),
    )
    sets = _tool_sets(plugins, context_of, engine, tools if tools is not None else config.tools.sets)
    return _serve(engine, sets, config.tools.prefix)


def _store(plugins: PluginManager, context_of: ContextOf, name: str) -> StateStoreSpec:
    provided = plugins.state_stores(context_of)
    stores = by_name("state store", provided, lambda spec: spec.name)
    return choose("state store", name, stores, option="--state-store or state.store", failures=plugins.failures).item


def _gate(
    plugins: PluginManager,
    context_of: ContextOf,
    workspace: Workspace,
    *,
    enabled: bool,
    runner: str | None,
    timeout: int,
    max_attempts: int,
) -> QualityGate | None:
    provided = plugins.review_runners(context_of)
    runners = by_name("review runner", provided, lambda spec: spec.name)
    if not enabled:
        return None
    name = runner or SELF_REVIEW
    option = "--external-runner or quality_gate.runner"
    spec = choose("review runner", name, runners, option=option, failures=plugins.failures).item
    created = spec.create()
    return QualityGate(
        cli=None if spec.name == SELF_REVIEW else created,
        max_inline_files=spec.max_inline_files,
        self_review=created,
        workspace=workspace,
        timeout=timeout,
        max_attempts=max_attempts,
    )


def _tool_sets(
    plugins: PluginManager, context_of: ContextOf, engine: Engine, chosen: Sequence[str] | None
) -> list[Provided[ToolSet]]:
    provided = plugins.tool_sets(context_of, engine)
    sets = by_name("tool set", provided, lambda tool_set: tool_set.name)
    if chosen is None:
        return list(sets.values())
    picked = {
        name: choose("tool set", name, sets, option="--tools or tools.sets", failures=plugins.failures)
        for name in chosen
    }
    if not picked:
        raise ConfigError("no tool set is chosen", hint=f"Choose from: {', '.join(sets)}.")
    return list(picked.values())


def _serve(engine: Engine, sets: list[Provided[ToolSet]], prefixes: Mapping[str, str]) -> FastMCP[Any]:
    calls = Calls(engine.sessions)
    server: FastMCP[Any] = FastMCP(
        "deepwork",
        join_instructions(one.item for one in sets),
        version=__version__,
        middleware=[calls],
        lifespan=_lifespan(engine.sessions),
        mask_error_details=True,
        dereference_schemas=False,
        on_duplicate="error",
    )
    for name, spec in named_tools(sets, prefixes):
        add_tool(server, name, spec, calls)
    for one in sets:
        for resource in one.item.resources:
            add_resource(server, resource, calls)
    return server


def _lifespan(sessions: StateManager) -> Callable[[Any], Any]:
    """Close the store when the last of those who use the server is gone; in-memory clients enter anew."""
    users = 0

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[dict[str, Any]]:
        nonlocal users
        users += 1
        try:
            yield {}
        finally:
            users -= 1
            if not users:
                await sessions.close()

    return lifespan
