"""The context of each plugin, made from configuration and environment."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from anyio import CancelScope, to_thread
from pydantic import BaseModel, ValidationError

from deepwork.documents.problems import Problem
from deepwork.errors import ConfigError
from deepwork.paths.user_folders import project_name, user_state_dir
from deepwork.paths.workspace import Workspace
from deepwork.ports.context import (
    ContextOf,
    GitT,
    ObjectT,
    PluginContext,
    ReviewCommand,
    SettingsT,
    TrustedCommand,
)
from deepwork.ports.inbox import Inbox
from deepwork.project.config import LoadedConfig
from deepwork.project.settings import join, trusted_part
from deepwork.project.shared import SharedObjects
from deepwork.project.trust import Trust
from deepwork.project.trusted_commands import trusted_copies
from deepwork.text import nearest

if TYPE_CHECKING:
    from deepwork.loading.manager import PluginManager


class Host(Protocol):
    """What the contexts of all plugins of a project share."""

    shared: SharedObjects

    @property
    def inbox(self) -> Inbox: ...
    @property
    def plugins(self) -> PluginManager: ...
    async def close(self) -> None: ...


@dataclass(frozen=True)
class ProjectContext(PluginContext):
    """The context of one plugin in one project."""

    plugin: str
    workspace: Workspace
    environment: Mapping[str, str]
    platform: str | None
    review_commands: tuple[ReviewCommand, ...]
    trust: Trust
    _user_settings: Mapping[str, Any]
    _project_settings: Mapping[str, Any]
    _context_of: ContextOf
    _host: Host

    @property
    def user_dir(self) -> Path:
        return user_state_dir(self.environment) / "projects" / project_name(self.workspace.root) / self.plugin

    def settings(self, model: type[SettingsT]) -> SettingsT:
        path = f"plugins.settings.{self.plugin}."
        own = self._user_settings
        trusted_settings = trusted_part(model, self._project_settings, self.trust.allows, path, own=own)
        try:
            return model.model_validate(join(self._user_settings, trusted_settings))
        except ValidationError as error:
            raise ConfigError(
                "\n".join(self._sentence(model, detail) for detail in error.errors(include_url=False)),
                hint="Correct it in .deepwork/config.yml or in your own config.yml.",
            ) from None

    def of(self, plugin: str) -> PluginContext:
        return self._context_of(plugin)

    def has(self, plugin: str) -> bool:
        return self._host.plugins.has(plugin)

    def trusts(self, label: str, content: Any) -> bool:
        return self._trusts(f"{self.plugin}: {label}", content)

    async def git(self, kind: type[GitT], folder: Path | None = None) -> GitT | None:
        return await kind.open(folder or self.workspace.root, self.environment, trusts=self._trusts)

    def _trusts(self, label: str, content: Any) -> bool:
        is_trusted = self.trust.allows(label, content)
        if not is_trusted:
            self.trust.remember_refusal(label, content)
        return is_trusted

    @asynccontextmanager
    async def prepared(self, command: TrustedCommand, *, work: Collection[str] = ()) -> AsyncIterator[list[str] | None]:
        copies = trusted_copies(command, self.workspace.root, self.trust, owner=self.plugin, work=work)
        arguments = await to_thread.run_sync(copies.__enter__)
        try:
            yield arguments
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(copies.__exit__, None, None, None)

    async def shared(self, key: str, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> ObjectT:
        return await self._host.shared.get(key, open_)

    def inbox(self) -> Inbox:
        return self._host.inbox

    def _sentence(self, model: type[BaseModel], detail: Any) -> str:
        key = ".".join(["plugins", "settings", self.plugin, *map(str, detail["loc"])])
        if detail["type"] == "extra_forbidden":
            return Problem(f"unknown setting{nearest(str(detail['loc'][-1]), tuple(model.model_fields))}").at(key)
        return Problem(detail["msg"]).at(key)


ContextT = TypeVar("ContextT", bound=ProjectContext)


def contexts(loaded: LoadedConfig, host: Host, platform: str | None, kind: type[ContextT]) -> Callable[[str], ContextT]:
    """Return the function that makes a plugin's context of its name."""
    review_commands = _review_commands(loaded)

    def context_of(plugin: str) -> ContextT:
        return kind(
            plugin=plugin,
            workspace=loaded.workspace,
            environment=os.environ,
            platform=platform,
            review_commands=review_commands,
            trust=loaded.trust,
            _user_settings=loaded.user_settings.get(plugin, {}),
            _project_settings=loaded.project_settings.get(plugin, {}),
            _context_of=context_of,
            _host=host,
        )

    return context_of


_LATER_KEYS = ("verdict", "folder", "repeatable", "must_fail")


def _review_commands(loaded: LoadedConfig) -> tuple[ReviewCommand, ...]:
    """Join the programs that the user and the project name as reviewers; of one name the user's counts."""
    own = set(loaded.user.quality_gate.commands)
    sections = {**loaded.requested.quality_gate.commands, **loaded.user.quality_gate.commands}
    return tuple(
        ReviewCommand(
            name,
            tuple(section.run),
            tuple(section.pass_env),
            TrustedCommand(
                f"setting quality_gate.commands.{name}",
                tuple(section.run),
                # A default is not named, so that what was trusted before there was the key stays trusted.
                {"pass_env": section.pass_env, **section.model_dump(include={*_LATER_KEYS}, exclude_defaults=True)},
                needs_trust=name not in own,
            ),
            section.verdict,
            section.folder,
            section.verdict == "exit_code" if section.repeatable is None else section.repeatable,
            tuple(section.must_fail),
        )
        for name, section in sections.items()
    )
