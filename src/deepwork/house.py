"""One project as its configuration and its plugins make it: the parts of which servers and commands are built."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deepwork.config import Config, load_config, resolve_root
from deepwork.engine.engine import Engine
from deepwork.engine.gate import QualityGate
from deepwork.engine.sessions import StateManager
from deepwork.errors import ConfigError, DeepWorkError
from deepwork.jobs.catalogue import Catalogue
from deepwork.loading.catalog import by_name, choose
from deepwork.loading.contexts import contexts
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import PluginManager, Provided
from deepwork.ports.records import Check, StateStoreSpec, ToolSet
from deepwork.ports.shared import SharedObjects

SELF_REVIEW = "self"


def load_plugins(config: Config, environment: Mapping[str, str], blocked: Iterable[str] = ()) -> PluginManager:
    """Load the installed plugins, without those that the configuration, the environment or the caller blocks."""
    named = environment.get("DEEPWORK_NO_PLUGINS", "").split(",")
    return PluginManager(
        blocked={*config.plugins.block, *blocked, *(name.strip() for name in named)},
        required=config.plugins.require,
        strict=environment.get("DEEPWORK_STRICT_PLUGINS", "") not in ("", "0"),
    )


class House:
    """Asks the plugins for what one project needs, each part when it is wanted.

    Raises:
        ConfigError: The project or its configuration cannot be used.
        PluginError: A plugin is broken, or a name is unknown or offered twice; each method for its own part.
    """

    def __init__(self, root: str | Path, *, platform: str | None = None, plugins: PluginManager | None = None) -> None:
        loaded = load_config(resolve_root(root), os.environ)
        self.config, self.workspace, self.trust = loaded.config, loaded.workspace, loaded.trust
        self.plugins = plugins or load_plugins(self.config, os.environ)
        self.shared = SharedObjects()
        self._contexts = contexts(loaded, self.shared, platform)

    def catalogue(self) -> Catalogue:
        """Join all job sources."""
        sources = by_name("job source", self.plugins.job_sources(self._contexts), lambda source: source.name)
        return Catalogue(one.item for one in sources.values())

    def store(self, name: str | None = None) -> StateStoreSpec:
        """Choose a state store; that of the configuration if none is named."""
        stores = by_name("state store", self.plugins.state_stores(self._contexts), lambda spec: spec.name)
        option = "--state-store or state.store"
        chosen = name or self.config.state.store
        return choose("state store", chosen, stores, option=option, failures=self.plugins.failures).item

    def gate(self, runner: str | None, *, timeout: int, max_attempts: int) -> QualityGate:
        """Make the quality gate, with self-review if no runner is named."""
        runners = by_name("review runner", self.plugins.review_runners(self._contexts), lambda spec: spec.name)
        option = "--external-runner or quality_gate.runner"
        name = runner or SELF_REVIEW
        spec = choose("review runner", name, runners, option=option, failures=self.plugins.failures).item
        created = spec.create()
        return QualityGate(
            cli=None if spec.name == SELF_REVIEW else created,
            max_inline_files=spec.max_inline_files,
            self_review=created,
            workspace=self.workspace,
            timeout=timeout,
            max_attempts=max_attempts,
        )

    def engine(self, gate: QualityGate | None, *, store: str | None = None) -> Engine:
        """Make the engine on the jobs and the store of this project."""
        sessions = StateManager(self.store(store), self.workspace)
        return Engine(workspace=self.workspace, catalogue=self.catalogue(), sessions=sessions, gate=gate)

    def checks(self) -> list[Provided[Check]]:
        """Ask for the checks of `deepwork doctor`."""
        return self.plugins.checks(self._contexts)

    def offers(self) -> tuple[list[tuple[Candidate, str, str]], list[DeepWorkError]]:
        """List what every plugin adds, as plugin, kind and name, and what went wrong while they were asked."""
        found: list[tuple[Candidate, str, str]] = []
        errors: list[DeepWorkError] = list(self.plugins.problems)

        def add(kind: str, ask: Callable[[], Iterable[Provided[Any]]], names: Callable[[Any], Iterable[str]]) -> None:
            try:
                found.extend((one.by, kind, name) for one in ask() for name in names(one.item))
            except DeepWorkError as error:
                errors.append(error)

        def tool_sets() -> list[Provided[ToolSet]]:
            return self.plugins.tool_sets(self._contexts, self.engine(None))

        add("job source", lambda: self.plugins.job_sources(self._contexts), lambda one: [one.name])
        add("state store", lambda: self.plugins.state_stores(self._contexts), lambda one: [one.name])
        add("review runner", lambda: self.plugins.review_runners(self._contexts), lambda one: [one.name])
        add("check", self.checks, lambda one: [one.name])
        add("tool", tool_sets, lambda one: [spec.name for spec in one.tools])
        add("resource", tool_sets, lambda one: [spec.uri for spec in one.resources])
        add("prompt", tool_sets, lambda one: [spec.name for spec in one.prompts])
        return found, list({str(error): error for error in errors}.values())

    def tool_sets(self, engine: Engine, names: Sequence[str] | None = None) -> list[Provided[ToolSet]]:
        """Choose tool sets; those of the configuration, or all, if none are named."""
        sets = by_name("tool set", self.plugins.tool_sets(self._contexts, engine), lambda tool_set: tool_set.name)
        chosen = self.config.tools.sets if names is None else names
        if chosen is None:
            return list(sets.values())
        if not chosen:
            raise ConfigError("no tool set is chosen", hint=f"Choose from: {', '.join(sets)}.")
        option = "--tools or tools.sets"
        failures = self.plugins.failures
        return [choose("tool set", name, sets, option=option, failures=failures) for name in dict.fromkeys(chosen)]
