"""Builds a FastMCP server of a project: its tools, resources, prompts and lifespan."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from fastmcp import FastMCP

from deepwork import __version__
from deepwork.engine.engine import Engine
from deepwork.errors import ConfigError, DeepWorkError, PathRefused
from deepwork.loading.discovery import Candidate
from deepwork.loading.faults import place_of, told_as_fault
from deepwork.loading.manager import PluginManager, Provided
from deepwork.loading.selection import by_name, check_unlisted, named_tools
from deepwork.paths.paths import resolve_inside
from deepwork.ports.records import ToolSet
from deepwork.project.config import SELF_REVIEW
from deepwork.project.project import Project
from deepwork.project.shared import SharedObjects
from deepwork.server.completions import add_completions
from deepwork.server.instructions import NO_REVIEWER, STRICT, join_instructions
from deepwork.server.middleware import CallMiddleware
from deepwork.server.project_server import ProjectServer
from deepwork.server.tools import add_prompt, add_resource, add_tool

log = logging.getLogger("deepwork.server")

GATE_OFF = "the quality gate is off: steps are completed without their reviews, and histories say so"


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
    """Build a server for one project. It can be called in process at once; its store is closed with its lifespan.

    Args:
        project_root: The project's folder; made absolute.
        enable_quality_gate: Whether outputs are reviewed.
        quality_gate_timeout: Seconds that an external review may take.
        quality_gate_max_attempts: Failed external reviews after which a step is stuck.
        external_runner: Name of a review runner; None for self-review.
        tools: Names of tool sets to serve; by default those of the configuration, or all.
        state_store: Name of the state store; by default that of the configuration.
        platform: Name of the agent's platform, for plugins that depend on it.
        plugins: The plugins; by default all that are installed and not blocked by the configuration.

    Raises:
        ConfigError: The project or its configuration cannot be used.
        PluginError: A plugin is broken, or a name is unknown or offered twice.
    """
    project = Project(project_root, platform=platform, plugins=plugins)
    project.plugins.demand()
    gate = None
    if enable_quality_gate:
        gate = project.gate(
            external_runner or SELF_REVIEW, timeout=quality_gate_timeout, max_attempts=quality_gate_max_attempts
        )
    else:
        log.warning(GATE_OFF)
    return build_server(project, project.engine(gate, store=state_store), tools=tools)


def build_server(project: Project, engine: Engine, *, tools: Sequence[str] | None = None) -> FastMCP[Any]:
    """Build a server on an engine of the project, with the tool sets of these names.

    Raises:
        ConfigError: The state folder of the project cannot be used.
        PluginError: A plugin is broken, or a name is unknown or offered twice.
    """
    _check_state_dir(project)
    server = _server(project, engine, project.chosen_tool_sets(engine, tools))
    for notice in project.notices():
        log.warning("%s", notice)
    # The default is not worth a line. A choice is, and so is a choice that was not followed.
    level = logging.DEBUG if project.store_reason == "default" else logging.INFO
    log.log(level, "sessions are kept in the store %r, by %s", engine.sessions.store_name, project.store_reason)
    return server


def _check_state_dir(project: Project) -> None:
    """Refuse to start if no session could be saved.

    Raises:
        ConfigError: The state folder lies outside the project, because of a link.
    """
    workspace = project.workspace
    try:
        resolve_inside(str(workspace.state_dir), [workspace.root])
    except PathRefused as error:
        raise ConfigError(
            f"the folder {workspace.shown(workspace.state_dir)!r} {error.message}",
            hint="Remove the link; sessions and reviews are kept in the project itself.",
        ) from None


def _server(project: Project, engine: Engine, sets: list[Provided[ToolSet]]) -> FastMCP[Any]:
    unlisted = by_name("unlisted tool", project.unlisted_tools.demand(), lambda tool: tool.name)
    check_unlisted(unlisted, named_tools(sets, project.config.tools.prefix))
    middleware = CallMiddleware(engine.sessions, {name: tool.item for name, tool in unlisted.items()})
    server = ProjectServer(
        "deepwork",
        join_instructions((tool_set.item for tool_set in sets), _strict_text(project, engine)),
        version=__version__,
        middleware=[middleware],
        lifespan=lifespan_of(engine, project.shared),
        mask_error_details=True,
        dereference_schemas=False,
        on_duplicate="error",
    )
    for part in _parts(project, sets, server, middleware):
        part.add()
    prompts = [spec for tool_set in sets for spec in tool_set.item.prompts]
    resources = [spec for tool_set in sets for spec in tool_set.item.resources]
    add_completions(server, prompts, resources, middleware)
    return server


class _Part(NamedTuple):
    """A tool, resource or prompt of a plugin, and what adds it to a server."""

    plugin: Candidate
    subject: str
    register: Callable[[], None]

    def add(self) -> None:
        with told_as_fault(self.plugin, self.subject):
            self.register()


def _parts(
    project: Project, sets: list[Provided[ToolSet]], server: FastMCP[Any], middleware: CallMiddleware
) -> Iterator[_Part]:
    for name, tool in named_tools(sets, project.config.tools.prefix):
        yield _Part(
            tool.by, f"tool {name!r}{place_of(tool.item.fn)}", partial(add_tool, server, name, tool.item, middleware)
        )
    resources = [Provided(spec, tool_set.by) for tool_set in sets for spec in tool_set.item.resources]
    for uri, resource in by_name("resource", resources, lambda spec: spec.uri).items():
        subject = f"resource {uri!r}{place_of(resource.item.fn)}"
        yield _Part(resource.by, subject, partial(add_resource, server, resource.item, middleware))
    prompts = [Provided(spec, tool_set.by) for tool_set in sets for spec in tool_set.item.prompts]
    for name, prompt in by_name("prompt", prompts, lambda spec: spec.name).items():
        subject = f"prompt {name!r}{place_of(prompt.item.fn)}"
        yield _Part(prompt.by, subject, partial(add_prompt, server, prompt.item, middleware))


def find_faults(project: Project, engine: Engine) -> list[Provided[DeepWorkError]]:
    """Build each tool, resource and prompt that a server of the project would have, and give the errors.

    Raises:
        PluginError: Names clash, so that there is nothing to build.
    """
    failures: list[Provided[DeepWorkError]] = []
    for part in _checked_parts(project, engine, _check_server()):
        try:
            part.add()
        except DeepWorkError as error:
            failures.append(Provided(error, part.plugin))
    return failures


def build_tools(project: Project, engine: Engine, names: Sequence[str]) -> FastMCP[Any]:
    """Build what the tool sets of these names add to a server, to be looked at and not served.

    Raises:
        PluginError: A plugin is broken, or a name is unknown or offered twice.
    """
    server = _check_server()
    for part in _checked_parts(project, engine, server, names):
        part.add()
    return server


def _check_server() -> FastMCP[Any]:
    return FastMCP("check", dereference_schemas=False, on_duplicate="error")


def _checked_parts(
    project: Project, engine: Engine, server: FastMCP[Any], names: Sequence[str] | None = None
) -> Iterator[_Part]:
    return _parts(project, project.chosen_tool_sets(engine, names), server, CallMiddleware(engine.sessions))


def _strict_text(project: Project, engine: Engine) -> str:
    """Return a text that the gate is strict, and whether any workflow can be started; "" if it is not strict."""
    if not project.config.quality_gate.strict:
        return ""
    # Of its own thread, because this may be called while an event loop runs.
    with ThreadPoolExecutor(1) as thread:
        error = thread.submit(anyio.run, engine.strict.problem).result()
    if error is None:
        return STRICT
    log.warning("%s", " ".join(filter(None, [f"{error.message}.", error.hint])))
    return f"{STRICT} {NO_REVIEWER}"


def lifespan_of(engine: Engine, shared: SharedObjects) -> Callable[[Any], Any]:
    """End reviews, close the store and what plugins share, when the last client leaves; later ones open them again."""
    clients = 0

    @asynccontextmanager
    async def lifespan(_server: Any) -> AsyncIterator[dict[str, Any]]:
        nonlocal clients
        clients += 1
        try:
            yield {}
        finally:
            clients -= 1
            if not clients:
                await engine.close()
                await shared.close()

    return lifespan
