"""One project as its configuration and its plugins make it: the parts of which servers and commands are built."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepwork.config import CommandSection, Config, load_config, resolve_root
from deepwork.errors import ConfigError, DeepWorkError
from deepwork.jobs.catalogue import Catalogue
from deepwork.loading.catalog import by_name, choose, named_tools
from deepwork.loading.contexts import contexts
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import PluginManager, Provided
from deepwork.ports.records import Check, ReviewRunnerSpec, StateStoreSpec, ToolSet
from deepwork.ports.review_runner import ReviewRunner
from deepwork.ports.shared import SharedObjects

if TYPE_CHECKING:
    from deepwork.engine.engine import Engine
    from deepwork.engine.gate import QualityGate

SELF_REVIEW = "self"


def load_plugins(
    config: Config,
    environment: Mapping[str, str],
    blocked: Iterable[str] = (),
    candidates: Iterable[Candidate] | None = None,
) -> PluginManager:
    """Load the installed plugins, without those that the configuration, the environment or the caller blocks."""
    named = environment.get("DEEPWORK_NO_PLUGINS", "").split(",")
    return PluginManager(
        blocked={*config.plugins.block, *blocked, *(name.strip() for name in named)},
        required=config.plugins.require,
        strict=environment.get("DEEPWORK_STRICT_PLUGINS", "") not in ("", "0"),
        candidates=candidates,
    )


class House:
    """Asks the plugins for what one project needs, each part when it is wanted, and imports it then.

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
        self._asked = loaded.asked

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
        from deepwork.engine.gate import QualityGate
        from deepwork.engine.panel import Panel, Reviewer, Route

        known = self._runners()
        made: dict[str, Reviewer] = {}

        def reviewer(name: str, option: str) -> Reviewer:
            spec = choose("review runner", name, known, option=option, failures=self.plugins.failures)
            return made.get(name) or made.setdefault(name, Reviewer.made_by(spec))

        otherwise = reviewer(runner or SELF_REVIEW, "--external-runner or quality_gate.runner")
        routes = [
            Route(reviewer(one.runner, "quality_gate.runners"), one.job, one.step, one.review)
            for one in self.config.quality_gate.runners
        ]
        return QualityGate(
            cli=None if otherwise.name == SELF_REVIEW else otherwise.runner,
            max_inline_files=otherwise.max_inline_files,
            panel=Panel(otherwise, routes),
            workspace=self.workspace,
            timeout=timeout,
            max_attempts=max_attempts,
            concurrency=self.config.quality_gate.concurrency,
        )

    def _runners(self) -> dict[str, ReviewRunnerSpec]:
        """Join the runners of plugins and the commands of the configuration, those that wait for trust included."""
        provided = by_name("review runner", self.plugins.review_runners(self._contexts), lambda spec: spec.name)
        runners = {name: one.item for name, one in provided.items()}
        asked = self._asked.quality_gate.commands
        for name, command in {**asked, **self.config.quality_gate.commands}.items():
            if name in provided:
                raise ConfigError(
                    f"quality_gate.commands.{name}: this name is taken by the runner of {provided[name].by}",
                    hint="Give the command another name.",
                )
            waits = name not in self.config.quality_gate.commands
            runners[name] = self._command(name, command, waits=waits)
        return dict(sorted(runners.items()))

    def _command(self, name: str, command: CommandSection, *, waits: bool) -> ReviewRunnerSpec:
        from deepwork.command_runner import MAX_INLINE_FILES, CommandRunner

        content = self._asked.model_dump(exclude_unset=True).get("quality_gate", {}).get("commands")

        def is_trusted() -> bool:
            return not waits or self.trust.allows("setting quality_gate.commands", content)

        def create() -> ReviewRunner:
            return CommandRunner(name, command, environment=os.environ, is_trusted=is_trusted)

        return ReviewRunnerSpec(name=name, create=create, max_inline_files=MAX_INLINE_FILES)

    def engine(self, gate: QualityGate | None, *, store: str | None = None) -> Engine:
        """Make the engine on the jobs and the store of this project."""
        from deepwork.engine.engine import Engine
        from deepwork.engine.sessions import StateManager

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
        errors += self._obstacles()
        return found, list({str(error): error for error in errors}.values())

    def _obstacles(self) -> Iterator[DeepWorkError]:
        """Try what a server does at its start, and give what would stop it."""
        gate = self.config.quality_gate
        for attempt in (
            lambda: self.gate(gate.runner, timeout=gate.timeout, max_attempts=gate.max_attempts),
            lambda: list(named_tools(self.tool_sets(self.engine(None)), self.config.tools.prefix)),
        ):
            try:
                attempt()
            except DeepWorkError as error:
                yield error

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
