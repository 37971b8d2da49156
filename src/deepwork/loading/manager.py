"""Imports plugins, and asks each what it declares, so that every item knows who gave it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pluggy

from deepwork import hookspecs
from deepwork.errors import ConfigError, NameClash, PluginLoadError
from deepwork.loading.contexts import ContextOf
from deepwork.loading.discovery import Candidate, installed
from deepwork.ports.job_source import JobSource
from deepwork.ports.records import ReviewRunnerSpec, StateStoreSpec, ToolSet

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
    """All plugins of one server. There is no global one.

    Args:
        blocked: Names of plugins or distributions that are not imported.
        required: Names of plugins without which nothing may start.
        candidates: What could be loaded; the installed plugins if not given.
    """

    def __init__(
        self,
        *,
        blocked: Collection[str] = (),
        required: Collection[str] = (),
        candidates: Iterable[Candidate] | None = None,
    ) -> None:
        self._manager = pluggy.PluginManager("deepwork")
        self._manager.add_hookspecs(hookspecs)
        self._known: dict[str, Candidate] = {}
        self.statuses: list[PluginStatus] = []
        everything = list(installed() if candidates is None else candidates)
        chosen = [one for one in everything if not {one.name, one.distribution} & set(blocked)]
        self.statuses += [PluginStatus(one, "blocked") for one in everything if one not in chosen]
        _refuse_twins(chosen)
        for candidate in chosen:
            self._load(candidate)
        self._demand(required)

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

    def _collect(self, hook: str, kind: type[ItemT], context: ContextOf, **arguments: Any) -> list[Provided[ItemT]]:
        found: list[Provided[ItemT]] = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            candidate = self._known[implementation.plugin_name]
            given = {"context": context(candidate.name), **arguments}
            for item in _ask(implementation, candidate, hook, given):
                if not isinstance(item, kind):
                    raise PluginLoadError(
                        f"{candidate}: hook {hook} gave {type(item).__name__}, not {kind.__name__}",
                        hint=_block(candidate),
                    )
                found.append(Provided(item, candidate))
        return found

    @property
    def failures(self) -> list[PluginStatus]:
        """The plugins that could not be loaded."""
        return [status for status in self.statuses if status.status == "failed"]

    def _load(self, candidate: Candidate) -> None:
        try:
            module = candidate.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a foreign import does, the server runs
            cause = f"{type(error).__name__}: {error}".splitlines()[0]
            self.statuses.append(PluginStatus(candidate, "failed", cause=cause))
            log.warning("%s could not be loaded and is left out: %s", candidate, cause)
            return
        self._register(candidate, module)
        self._known[candidate.name] = candidate
        callers = self._manager.get_hookcallers(module) or []
        self.statuses.append(PluginStatus(candidate, "active", tuple(sorted(caller.name for caller in callers))))

    def _register(self, candidate: Candidate, module: Any) -> None:
        try:
            self._manager.register(module, name=candidate.name)
            self._manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            cause = str(error).partition(" in plugin <")[0]
            raise PluginLoadError(f"{candidate}: {cause}", hint=_block(candidate)) from error

    def _demand(self, required: Collection[str]) -> None:
        for name in required:
            for status in self.failures:
                if name in (status.plugin.name, status.plugin.distribution):
                    raise PluginLoadError(f"{status.plugin} is required and could not be loaded: {status.cause}")
            if not any(name in (one.name, one.distribution) for one in self._known.values()):
                raise ConfigError(
                    f"plugins.require names {name!r}, which is not installed or is blocked",
                    hint=f"Install the distribution, or take {name!r} out of plugins.require.",
                )


def _ask(implementation: Any, candidate: Candidate, hook: str, given: Mapping[str, Any]) -> list[Any]:
    try:
        result = implementation.function(**{name: given[name] for name in implementation.argnames})
        if inspect.isawaitable(result):
            result.close() if inspect.iscoroutine(result) else None
            raise TypeError("the hook is async; hooks declare, and the objects they give may be async")
        return [] if result is None else list(result)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        cause = f"{type(error).__name__}: {error}"
        raise PluginLoadError(f"{candidate}: hook {hook} failed: {cause}", hint=_block(candidate)) from error


def _refuse_twins(candidates: list[Candidate]) -> None:
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        other = first.setdefault(candidate.name, candidate)
        if other is not candidate:
            raise NameClash(
                f"plugin name {candidate.name!r} is used twice:\n  - {other}\n  - {candidate}",
                hint=_block(candidate),
            )


def _block(candidate: Candidate) -> str:
    name = candidate.name if candidate.builtin else candidate.distribution
    return f"To go without it, add to .deepwork/config.yml ->  plugins: {{block: [{name}]}}"
