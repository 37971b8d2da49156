"""What the host tells a plugin."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from deepwork.documents import Problem, nearest
from deepwork.errors import ConfigError
from deepwork.workspace import Workspace

SettingsT = TypeVar("SettingsT", bound=BaseModel)


@dataclass(frozen=True)
class PluginContext:
    """Made once for each plugin, before its first hook is called."""

    plugin: str
    workspace: Workspace
    platform: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    _settings: Mapping[str, Any] = field(default_factory=dict)

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

        Raises:
            ConfigError: A value does not fit; it names the key.
        """
        from pydantic import ValidationError

        try:
            return model.model_validate(dict(self._settings))
        except ValidationError as error:
            raise ConfigError(
                "\n".join(self._sentence(model, detail) for detail in error.errors(include_url=False)),
                hint="Correct it in .deepwork/config.yml or in your own config.yml.",
            ) from None

    def _sentence(self, model: type[BaseModel], detail: Any) -> str:
        key = ".".join(["plugins", "settings", self.plugin, *map(str, detail["loc"])])
        if detail["type"] == "extra_forbidden":
            return Problem(f"unknown setting{nearest(str(detail['loc'][-1]), tuple(model.model_fields))}").at(key)
        return Problem(detail["msg"]).at(key)
