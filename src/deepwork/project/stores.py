"""State stores by their name, for commands that copy from one to another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project


@asynccontextmanager
async def open_store(root: str | Path, name: str | None = None) -> AsyncIterator[StateStore]:
    """Open what `--state-store NAME` would open in a project, and close it with all that was opened for it.

    Args:
        root: The project's folder.
        name: Name of the state store; that of the configuration if not given.

    Raises:
        ConfigError: The project or its configuration cannot be used.
        PluginError: No plugin offers the store.
    """
    project = Project(root)
    try:
        async with project.store(name).open(project.workspace) as store:
            yield store
    finally:
        await project.close()
