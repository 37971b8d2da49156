"""The context of a plugin in one of its commands, for which no server has made one."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deepwork.ports.context import CommandContext
from deepwork.ports.inbox import Inbox
from deepwork.project.config import load_config, resolve_root
from deepwork.project.contexts import ProjectContext, contexts
from deepwork.project.shared import SharedObjects

if TYPE_CHECKING:
    from deepwork.loading.manager import PluginManager
    from deepwork.project.project import Project


class CommandHost:
    """What a command opens for the context of its plugin; the other plugins are loaded when they are needed."""

    def __init__(self, root: Path, platform: str | None) -> None:
        self._root = root
        self._platform = platform
        self.shared = SharedObjects()

    @cached_property
    def _project(self) -> Project:
        from deepwork.project.project import Project

        return Project(self._root, platform=self._platform, shared=self.shared)

    @property
    def inbox(self) -> Inbox:
        return self._project.inbox

    @property
    def plugins(self) -> PluginManager:
        return self._project.plugins

    async def close(self) -> None:
        """Close what was opened."""
        await (self._project if "_project" in vars(self) else self.shared).close()


class OpenedContext(ProjectContext, CommandContext):
    """The context of a plugin in a command, which closes what the command has opened."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._host.close()


def open_context(plugin: str, root: str | Path, *, platform: str | None = None) -> CommandContext:
    """Make the context of a plugin for one of its commands of the terminal, which no server has given one.

    A command that uses shared objects leaves it as an async context manager: `async with open_context(...) as context`.

    Args:
        plugin: The plugin's name.
        root: The project's folder.
        platform: Name of the agent's platform.

    Raises:
        ConfigError: The project or its configuration cannot be used.
    """
    folder = resolve_root(root)
    return contexts(load_config(folder, os.environ), CommandHost(folder, platform), platform, OpenedContext)(plugin)
