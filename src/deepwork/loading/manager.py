"""Imports plugins, and asks each of them what it declares, so that of every item the plugin is known."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pluggy

from deepwork import hookspecs
from deepwork.errors import ConfigError, DeepWorkError, NameClash, PluginLoadError
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.faults import cause_of, fault, hint_to_block, hint_to_keep_one, place_of
from deepwork.ports.context import ContextOf
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.text import nearest

log = logging.getLogger("deepwork.plugins")

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Provided(Generic[ItemT]):
    """An item and the plugin that gave it."""

    item: ItemT
    by: Candidate


@dataclass(frozen=True)
class Answers(Generic[ItemT]):
    """The items of all plugins for one hook, and the errors of the failed plugins."""

    items: tuple[Provided[ItemT], ...]
    failures: tuple[Provided[DeepWorkError], ...]

    @property
    def errors(self) -> tuple[DeepWorkError, ...]:
        """The errors, of all plugins."""
        return tuple(failure.item for failure in self.failures)

    def demand(self) -> tuple[Provided[ItemT], ...]:
        """Return the items, if no plugin has failed.

        Raises:
            PluginLoadError: A plugin raised an error, or returned something else than the hook demands.
            ConfigError: The settings of a plugin are not valid.
        """
        if self.errors:
            raise self.errors[0]
        return self.items


@dataclass(frozen=True)
class PluginStatus:
    """The state of a plugin: `active`, `blocked`, or `failed` with its cause."""

    plugin: Candidate
    status: str
    hooks: tuple[str, ...] = ()
    cause: str | None = None


class PluginManager:
    """All plugins of one server. No manager is global. Creating one never fails: `demand` raises what is wrong.

    Args:
        blocked: Names of plugins or distributions that are not imported.
        required: Names of plugins that every server needs.
        strict: Whether a plugin that cannot be imported is a reason not to start.
        candidates: The plugins that could be loaded. Default: the installed ones.
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
        self._candidates: dict[str, Candidate] = {}
        self.statuses: list[PluginStatus] = []
        self.problems: list[DeepWorkError] = []
        everything = list(installed() if candidates is None else candidates)
        chosen = [plugin for plugin in everything if not {plugin.name, plugin.distribution} & set(blocked)]
        self.statuses += [PluginStatus(plugin, "blocked") for plugin in everything if plugin not in chosen]
        for candidate in self._with_unique_names(chosen):
            self._load(candidate)
        self._check_required(required)

    def demand(self) -> None:
        """Refuse to go on if the plugins cannot be used as they are.

        Raises:
            PluginError: Two plugins have the same name, a plugin uses a hook wrongly, or a required plugin is broken.
            ConfigError: A required plugin is not installed, or is blocked.
        """
        if self.problems:
            raise self.problems[0]

    def ask(self, hook: str, kind: type[ItemT], context: ContextOf | None = None, **arguments: Any) -> Answers[ItemT]:
        """Ask every plugin that has the hook, one by one, so that a failing plugin does not stop the rest.

        Args:
            hook: The name of the hook.
            kind: The type of its items.
            context: Makes the context of a plugin from its name; None for hooks without one, as for commands.
            **arguments: Further arguments of the hook.
        """
        items: list[Provided[ItemT]] = []
        failures: list[Provided[DeepWorkError]] = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            candidate = self._candidates[implementation.plugin_name]
            hook_arguments = {"context": context(candidate.name), **arguments} if context else arguments
            try:
                answer = _ask(implementation, candidate, hook, hook_arguments, kind)
            except DeepWorkError as error:
                failures.append(Provided(error, candidate))
                continue
            wrong_items = [item for item in answer if not isinstance(item, kind)]
            if wrong_items:
                text = f"{candidate}: hook {hook} gave {type(wrong_items[0]).__name__}, not {kind.__name__}"
                failures.append(Provided(PluginLoadError(text, hint=hint_to_block(candidate)), candidate))
            items += [Provided(item, candidate) for item in answer if isinstance(item, kind)]
        return Answers(tuple(items), tuple(failures))

    def has(self, name: str) -> bool:
        """True if a plugin is loaded."""
        return any(status.plugin.name == name and status.status == "active" for status in self.statuses)

    @property
    def failures(self) -> list[PluginStatus]:
        """The plugins that could not be loaded."""
        return [status for status in self.statuses if status.status == "failed"]

    @property
    def left_out(self) -> list[PluginStatus]:
        """The plugins that could not be loaded, and the features that are blocked: what may offer a missing name."""
        blocked = [status for status in self.statuses if status.status == "blocked" and status.plugin.builtin]
        return [*self.failures, *blocked]

    @property
    def left_out_text(self) -> str:
        """The same, for the end of an error about something that is missing."""
        plugins = ", ".join(str(status.plugin) for status in self.left_out)
        return f"; left out: {plugins}" if plugins else ""

    def _load(self, candidate: Candidate) -> None:
        try:
            with stdout_on_stderr():
                module = candidate.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - no import of a plugin may stop the server
            cause = cause_of(error, candidate)
            self._fail(candidate, cause)
            if self._strict:
                text = f"{candidate} could not be loaded, and DEEPWORK_STRICT_PLUGINS is set: {cause}"
                self.problems.append(PluginLoadError(text, hint=hint_to_block(candidate)))
            else:
                log.warning("%s could not be loaded and is left out: %s", candidate, cause)
            return
        misuse = self._register(module, candidate)
        if misuse:
            self._fail(candidate, misuse)
            self.problems.append(PluginLoadError(f"{candidate}: {misuse}", hint=hint_to_block(candidate)))
            return
        self._candidates[candidate.name] = candidate
        callers = self._manager.get_hookcallers(module) or []
        hooks = tuple(sorted(caller.name for caller in callers if caller.has_spec()))
        self.statuses.append(PluginStatus(candidate, "active", hooks))

    def _register(self, module: Any, candidate: Candidate) -> str | None:
        """Register a plugin, or say which hook it uses wrongly; unknown ones may be marked as optional."""
        try:
            self._manager.register(module, name=candidate.name)
        except pluggy.PluginValidationError as error:
            return self._unknown_argument(module) or " ".join(str(error).split())
        for caller in self._manager.get_hookcallers(module) or []:
            hooks = [hook for hook in caller.get_hookimpls() if hook.plugin_name == candidate.name]
            if not caller.has_spec() and not all(hook.optionalhook for hook in hooks):
                self._manager.unregister(module)
                valid = [name for name in vars(hookspecs) if name.startswith("deepwork_")]
                return f"unknown hook {caller.name!r}{nearest(caller.name, valid)}"
        return None

    def _unknown_argument(self, module: Any) -> str | None:
        for hook in dir(module):
            spec = getattr(hookspecs, hook, None)
            if spec is None or self._manager.parse_hookimpl_opts(module, hook) is None:
                continue
            valid = list(inspect.signature(spec).parameters)
            for name in inspect.signature(getattr(module, hook)).parameters:
                if name not in valid:
                    return f"hook {hook!r} takes {name!r}, which is not an argument of it; valid: {', '.join(valid)}"
        return None

    def _fail(self, candidate: Candidate, cause: str) -> None:
        self.statuses.append(PluginStatus(candidate, "failed", cause=cause))

    def _with_unique_names(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out all plugins that share a name."""
        by_name: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            by_name.setdefault(candidate.name, []).append(candidate)
        for name, sharing in by_name.items():
            if len(sharing) > 1:
                lines = "\n".join(f"  - {candidate}" for candidate in sharing)
                text = f"plugin name {name!r} is used twice:\n{lines}"
                self.problems.append(NameClash(text, hint=hint_to_keep_one(sharing)))
                for candidate in sharing:
                    self._fail(candidate, f"the name {name!r} is used by {len(sharing)} distributions")
        return [sharing[0] for sharing in by_name.values() if len(sharing) == 1]

    def _check_required(self, required: Collection[str]) -> None:
        failed = {status.plugin: status.cause for status in self.failures}
        loaded = {name for plugin in self._candidates.values() for name in (plugin.name, plugin.distribution)}
        for name in required:
            broken = [(plugin, cause) for plugin, cause in failed.items() if name in (plugin.name, plugin.distribution)]
            for candidate, cause in broken:
                text = f"{candidate} is required and could not be loaded: {cause}"
                self.problems.append(PluginLoadError(text))
            if not broken and name not in loaded:
                text = f"plugins.require names {name!r}, which is not installed or is blocked"
                cure = f"Install the distribution, or take {name!r} out of plugins.require."
                self.problems.append(ConfigError(text, hint=cure))


def _ask(implementation: Any, candidate: Candidate, hook: str, arguments: Mapping[str, Any], kind: type) -> list[Any]:
    try:
        with stdout_on_stderr():
            result = implementation.function(**{name: arguments[name] for name in implementation.argnames})
            misuse = _misuse(result, kind)
            if not misuse:
                return [] if result is None else list(result)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise fault(candidate, f"hook {hook}", error) from error
    text = f"{candidate}: hook {hook} failed: {misuse}{place_of(implementation.function)}"
    raise PluginLoadError(text, hint=hint_to_block(candidate))


def _misuse(result: Any, kind: type) -> str | None:
    """Return why the result of a hook cannot be iterated; None if it can."""
    if inspect.isasyncgen(result) or inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        return "the hook is async; hooks declare, and the objects they give may be async"
    if result is None or (isinstance(result, Iterable) and not isinstance(result, kind)):
        return None
    return f"it returned one {type(result).__name__}; `yield` it or return a list"
