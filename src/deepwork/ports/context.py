"""What the host tells a plugin."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from deepwork.documents import Problem, nearest
from deepwork.errors import ConfigError
from deepwork.ports.shared import ObjectT, SharedObjects
from deepwork.settings import join, trusted_part
from deepwork.trust import Trust
from deepwork.workspace import Workspace

SettingsT = TypeVar("SettingsT", bound=BaseModel)


@dataclass(frozen=True)
class PluginContext:
    """Made once for each plugin, before its first hook is called."""

    plugin: str
    workspace: Workspace
    trust: Trust
    platform: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    _user_settings: Mapping[str, Any] = field(default_factory=dict)
    _project_settings: Mapping[str, Any] = field(default_factory=dict)
    _shared: SharedObjects = field(default_factory=SharedObjects)

    @property
    def project_root(self) -> Path:
        return self.workspace.root

    @property
    def state_dir(self) -> Path:
        """`.deepwork/tmp`; it exists once the store has been opened."""
        return self.workspace.state_dir

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"deepwork.plugin.{self.plugin}")

    def settings(self, model: type[SettingsT]) -> SettingsT:
        """Validate `plugins.settings.<plugin>` of the configuration.

        Fields marked with `NeedsTrust` keep the user's value, or their default, while only the project sets them and
        the user has not trusted that.

        Raises:
            ConfigError: A value does not fit; it names the key.
        """
        path = f"plugins.settings.{self.plugin}."
        theirs = trusted_part(model, self._project_settings, self.trust.allows, path)
        try:
            return model.model_validate(join(self._user_settings, theirs))
        except ValidationError as error:
            raise ConfigError(
                "\n".join(self._sentence(model, detail) for detail in error.errors(include_url=False)),
                hint="Correct it in .deepwork/config.yml or in your own config.yml.",
            ) from None

    def trusts(self, label: str, content: Any) -> bool:
        """Ask whether the user has trusted this content of another file of the repository, such as a command.

        A refusal is remembered, so that `deepwork trust` can show it. Ask again at each use: the answer may change.
        """
        return self.trust.allows(f"{self.plugin}: {label}", content)

    async def shared(self, key: str, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> ObjectT:
        """Give the object of this key that all plugins of the server share, opened at its first use.

        It is closed when the server ends, after the store and in reverse order.
        """
        return await self._shared.get(key, open_)

    def _sentence(self, model: type[BaseModel], detail: Any) -> str:
        key = ".".join(["plugins", "settings", self.plugin, *map(str, detail["loc"])])
        if detail["type"] == "extra_forbidden":
            return Problem(f"unknown setting{nearest(str(detail['loc'][-1]), tuple(model.model_fields))}").at(key)
        return Problem(detail["msg"]).at(key)
