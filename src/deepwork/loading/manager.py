"""Imports plugins, and asks each what it declares, so that every item knows who gave it."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pluggy

from deepwork import hookspecs
from deepwork.documents import nearest
from deepwork.errors import ConfigError, DeepWorkError, NameClash, PluginLoadError
from deepwork.loading.contexts import ContextOf
from deepwork.loading.discovery import Candidate, installed
from deepwork.ports.job_source import JobSource
from deepwork.ports.records import Check, ReviewRunnerSpec, StateStoreSpec, ToolSet

log = logging.getLogger("deepwork.plugins")

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Provided(Generic[ItemT]):
    """An item and the plugin that gave it."""

    item: ItemT
    by: Candidate


@dataclass(frozen=True)
class PluginStatus:
    """What became of a plugin: `active`, `blocked` or `failed` with its cause."""

    plugin: Candidate
    status: str
    hooks: tuple[str, ...] = ()
    cause: str | None = None


class PluginManager:
    """All plugins of one server. There is no global one, and making one never fails: see `demand`.

    Args:
        blocked: Names of plugins or distributions that are not imported.
        required: Names of plugins without which no server may start.
        strict: Whether a plugin that cannot be imported is a reason not to start.
        candidates: What could be loaded; the installed plugins if not given.
    """

    def __init__(
        self,
        *,
        blocked: Collection[str] = (),
        required: Collection[str] = (),
        strict: bool = False,
        candidates: Iterable[Candidate] | None = None,
    ) -> None:
        self._manager = pluggy.PluginManager("deepwork")
        self._manager.add_hookspecs(hookspecs)
        self._strict = strict
        self._known: dict[str, Candidate] = {}
        self.statuses: list[PluginStatus] = []
        self.problems: list[DeepWorkError] = []
        everything = list(installed() if candidates is None else candidates)
        chosen = [one for one in everything if not {one.name, one.distribution} & set(blocked)]
        self.statuses += [PluginStatus(one, "blocked") for one in everything if one not in chosen]
        for candidate in self._without_twins(chosen):
            self._load(candidate)
        self._look_for(required)

    def demand(self) -> None:
        """Refuse to go on with plugins as they are, if there is a reason.

        Raises:
            PluginError: Two plugins have one name, one uses a hook wrongly, or a required one is broken.
            ConfigError: A required one is not there.
        """
        if self.problems:
            raise self.problems[0]

    # Each of these asks every plugin that has the hook, and raises PluginLoadError where one raises itself, or
    # gives something else than it should.

    def job_sources(self, context: ContextOf) -> list[Provided[JobSource]]:
        """Ask for job sources."""
        return self._collect("deepwork_job_sources", JobSource, context)  # type: ignore[type-abstract]  # only isinstance

    def state_stores(self, context: ContextOf) -> list[Provided[StateStoreSpec]]:
        """Ask for state stores."""
        return self._collect("deepwork_state_stores", StateStoreSpec, context)

    def review_runners(self, context: ContextOf) -> list[Provided[ReviewRunnerSpec]]:
        """Ask for review runners."""
        return self._collect("deepwork_review_runners", ReviewRunnerSpec, context)

    def tool_sets(self, context: ContextOf, engine: object) -> list[Provided[ToolSet]]:
        """Ask for tool sets."""
        return self._collect("deepwork_tool_sets", ToolSet, context, engine=engine)

    def checks(self, context: ContextOf) -> list[Provided[Check]]:
        """Ask for checks of `deepwork doctor`."""
        return self._collect("deepwork_checks", Check, context)

    def commands(self, kind: type[ItemT]) -> list[Provided[ItemT]]:
        """Ask for commands of the terminal, whose type the terminal knows; a plugin that fails is only warned of."""
        found, errors = self._gather("deepwork_commands", kind, None, {})
        for error in errors:
            log.warning("%s", error.message)
        return found

    @property
    def failures(self) -> list[PluginStatus]:
        """The plugins that could not be loaded."""
        return [status for status in self.statuses if status.status == "failed"]

    def _collect(self, hook: str, kind: type[ItemT], context: ContextOf, **arguments: Any) -> list[Provided[ItemT]]:
        found, errors = self._gather(hook, kind, context, arguments)
        if errors:
            raise errors[0]
        return found

    def _gather(
        self, hook: str, kind: type[ItemT], context: ContextOf | None, arguments: dict[str, Any]
    ) -> tuple[list[Provided[ItemT]], list[PluginLoadError]]:
        """Ask plugin by plugin, so that each item knows its plugin and none is silenced by another."""
        found: list[Provided[ItemT]] = []
        errors: list[PluginLoadError] = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            candidate = self._known[implementation.plugin_name]
            given = {"context": context(candidate.name), **arguments} if context else arguments
            try:
                items = _ask(implementation, candidate, hook, given)
            except PluginLoadError as error:
                errors.append(error)
                continue
            strange = [item for item in items if not isinstance(item, kind)]
            if strange:
                text = f"{candidate}: hook {hook} gave {type(strange[0]).__name__}, not {kind.__name__}"
                errors.append(PluginLoadError(text, hint=_block(candidate)))
            found += [Provided(item, candidate) for item in items if isinstance(item, kind)]
        return found, errors

    def _load(self, candidate: Candidate) -> None:
        try:
            with redirect_stdout(sys.stderr):
                module = candidate.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a foreign import does, the server runs
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            self._fail(candidate, cause)
            if self._strict:
                text = f"{candidate} could not be loaded, and DEEPWORK_STRICT_PLUGINS is set: {cause}"
                self.problems.append(PluginLoadError(text, hint=_block(candidate)))
            return
        wrong = self._register(module, candidate)
        if wrong:
            self._fail(candidate, wrong)
            self.problems.append(PluginLoadError(f"{candidate}: {wrong}", hint=_block(candidate)))
            return
        self._known[candidate.name] = candidate
        callers = self._manager.get_hookcallers(module) or []
        hooks = tuple(sorted(caller.name for caller in callers if caller.has_spec()))
        self.statuses.append(PluginStatus(candidate, "active", hooks))

    def _register(self, module: Any, candidate: Candidate) -> str | None:
        """Register a plugin, or say which hook it uses wrongly; unknown ones may be marked as optional."""
        try:
            self._manager.register(module, name=candidate.name)
        except pluggy.PluginValidationError as error:
            return " ".join(str(error).split())
        for caller in self._manager.get_hookcallers(module) or []:
            mine = [one for one in caller.get_hookimpls() if one.plugin_name == candidate.name]
            if not caller.has_spec() and not all(one.optionalhook for one in mine):
                self._manager.unregister(module)
                known = [name for name in vars(hookspecs) if name.startswith("deepwork_")]
                return f"unknown hook {caller.name!r}{nearest(caller.name, known)}"
        return None

    def _fail(self, candidate: Candidate, cause: str) -> None:
        self.statuses.append(PluginStatus(candidate, "failed", cause=cause))
        log.warning("%s could not be loaded and is left out: %s", candidate, cause)

    def _without_twins(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out all plugins whose name another one has too."""
        named: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            named.setdefault(candidate.name, []).append(candidate)
        for name, twins in named.items():
            if len(twins) > 1:
                shown = "\n".join(f"  - {one}" for one in twins)
                text = f"plugin name {name!r} is used twice:\n{shown}"
                self.problems.append(NameClash(text, hint=_block(twins[-1])))
                for one in twins:
                    self._fail(one, f"the name {name!r} is used by {len(twins)} distributions")
        return [twins[0] for twins in named.values() if len(twins) == 1]

    def _look_for(self, required: Collection[str]) -> None:
        failed = {status.plugin: status.cause for status in self.failures}
        there = {name for one in self._known.values() for name in (one.name, one.distribution)}
        for name in required:
            broken = [(one, cause) for one, cause in failed.items() if name in (one.name, one.distribution)]
            for candidate, cause in broken:
                text = f"{candidate} is required and could not be loaded: {cause}"
                self.problems.append(PluginLoadError(text))
            if not broken and name not in there:
                text = f"plugins.require names {name!r}, which is not installed or is blocked"
                cure = f"Install the distribution, or take {name!r} out of plugins.require."
                self.problems.append(ConfigError(text, hint=cure))


def _ask(implementation: Any, candidate: Candidate, hook: str, given: Mapping[str, Any]) -> list[Any]:
    try:
        with redirect_stdout(sys.stderr):
            result = implementation.function(**{name: given[name] for name in implementation.argnames})
            if not inspect.isawaitable(result):
                return [] if result is None else list(result)
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("the hook is async; hooks declare, and the objects they give may be async")
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        cause = f"{type(error).__name__}: {error}"
        raise PluginLoadError(f"{candidate}: hook {hook} failed: {cause}", hint=_block(candidate)) from error


def _block(candidate: Candidate) -> str:
    name = candidate.name if candidate.builtin else candidate.distribution
    return f"To go without it, add to .deepwork/config.yml ->  plugins: {{block: [{name}]}}"
