"""The context of a plugin in one of its commands, for which no server has made one."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deepwork.ports.context import CommandContext
from deepwork.ports.inbox import Inbox
from deepwork.project.config import load_config, resolve_root
from deepwork.project.contexts import ProjectContext, contexts
from deepwork.project.shared import SharedObjects

if TYPE_CHECKING:
    from deepwork.project.project import Project


class CommandHost:
    """What a command opens for the context of its plugin; the other plugins are loaded when they are needed."""

    def __init__(self, root: Path, platform: str | None) -> None:
        self._root = root
        self._platform = platform
        self.shared = SharedObjects()
        self._project: Project | None = None

    def inbox(self) -> Inbox:
        """Return the inbox of the project."""
        return self._opened().inbox

    def has(self, plugin: str) -> bool:
        """True if a plugin is loaded."""
        return self._opened().plugins.has(plugin)

    async def close(self) -> None:
        """Close what was opened."""
        await (self._project or self.shared).close()

    def _opened(self) -> Project:
        if self._project is None:
            from deepwork.project.project import Project

            self._project = Project(self._root, platform=self._platform, shared=self.shared)
        return self._project


@dataclass(frozen=True)
class OpenedContext(ProjectContext, CommandContext):
    """The context of a plugin in a command, which closes what the command has opened."""

    _host: CommandHost

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
    host = CommandHost(folder, platform)
    context = contexts(load_config(folder, os.environ), host.shared, host.inbox, host.has, platform)(plugin)
    return OpenedContext(**{item.name: getattr(context, item.name) for item in fields(context)}, _host=host)
