"""A project as commands of plugins use it: to start sessions, to go on with them, and to choose agents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deepwork.loading.selection import by_name
from deepwork.models.sessions import Session
from deepwork.ports.agent import AgentSpec
from deepwork.ports.context import PluginContext
from deepwork.ports.records import ClaimKeeper
from deepwork.project.project import Project
from deepwork.sessions.manager import load_session

if TYPE_CHECKING:
    from deepwork.engine.engine import Engine


@dataclass(frozen=True)
class OpenedProject:
    """What a command of a plugin uses of a project.

    Attributes:
        context: That of the plugin.
        engine: Starts sessions and changes them, as the tools of a server do.
        agents: The agents of all plugins, by name.
        claims: What keeps the claims of agents on shared work.
    """

    context: PluginContext
    engine: Engine
    agents: Mapping[str, AgentSpec]
    claims: Sequence[ClaimKeeper] = ()

    async def session(self, beginning: str) -> Session:
        """Return the session whose id begins like this.

        Raises:
            UnknownSession: No session does, or more than one.
            CorruptSession: It cannot be read.
        """
        return await load_session(await self.engine.sessions.store(), beginning)


@asynccontextmanager
async def open_project(plugin: str, root: str | Path) -> AsyncIterator[OpenedProject]:
    """Open a project for a command of a plugin, and close it with all that was opened for it.

    Args:
        plugin: The plugin's name.
        root: The project's folder.

    Raises:
        ConfigError: The project or its configuration cannot be used.
        PluginError: A plugin is broken, or two offer an agent of one name.
    """
    project = Project(root)
    try:
        gate = project.gate() if project.config.quality_gate.enabled else None
        specs = by_name("agent", project.agents.demand(), lambda spec: spec.name)
        agents = {name: provided.item for name, provided in specs.items()}
        claims = [provided.item for provided in project.claims.demand()]
        yield OpenedProject(project.context(plugin), project.engine(gate), agents, claims)
    finally:
        await project.close()
