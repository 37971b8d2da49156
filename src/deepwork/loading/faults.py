"""Errors in the code of a plugin, told as the plugin's: its name, the place in its code, the line that blocks it."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TypeVar

from deepwork.errors import DeepWorkError, JobLoadError, JobSourceError, PluginLoadError
from deepwork.loading.discovery import Candidate
from deepwork.models.jobs import Job
from deepwork.ports.job_source import JobSource
from deepwork.ports.records import Check, Finding, Level, ReviewRunnerSpec, StateStoreSpec
from deepwork.ports.review_runner import ReviewRunner
from deepwork.ports.state_store import StateStore
from deepwork.programs.stdout import stdout_on_stderr

log = logging.getLogger("deepwork.plugins")

BLOCK = "`plugins.block` in .deepwork/config.yml (below the key `plugins` if it is there)."

ArgumentT = TypeVar("ArgumentT")
ItemT = TypeVar("ItemT")


def hint_to_block(plugin: Candidate) -> str:
    """Return how to correct a plugin, and how to go without it."""
    place = plugin.distribution if plugin.is_file else plugin.package or plugin.name
    return f"Correct it in {place}, or, to go without it, add {plugin.block_name!r} to {BLOCK}"


def hint_to_keep_one(plugins: Sequence[Candidate]) -> str:
    """Return how to choose among conflicting plugins; which one stays is the user's decision."""
    share_distribution = len({plugin.block_name for plugin in plugins}) < len(plugins)
    names = [repr(plugin.name if share_distribution else plugin.block_name) for plugin in plugins]
    return f"Keep one of them: add {' or '.join(dict.fromkeys(names))} to {BLOCK}"


def cause_of(error: BaseException, plugin: Candidate) -> str:
    """Return the error, with the last line of the plugin's own code on the way there.

    The whole traceback is logged at level debug.
    """
    log.debug("%s failed", plugin, exc_info=error)
    first_line = f"{type(error).__name__}: {error}".splitlines()[0]
    place = _own_place(error, plugin.package)
    return f"{first_line} ({place})" if place else first_line


def fault(plugin: Candidate, subject: str, error: BaseException) -> PluginLoadError:
    """Make the error for something that a plugin raised."""
    return PluginLoadError(f"{plugin}: {subject} failed: {cause_of(error, plugin)}", hint=hint_to_block(plugin))


@contextmanager
def told_as_fault(plugin: Candidate, subject: str) -> Iterator[None]:
    """Turn what the code of a plugin raises into the plugin's error; expected errors have their own words."""
    try:
        yield
    except DeepWorkError:
        raise
    except Exception as error:
        raise fault(plugin, subject, error) from error


class GuardedSource(JobSource):
    """A job source of a plugin. If it raises, there is an error beside the jobs of the other sources."""

    def __init__(self, source: JobSource, plugin: Candidate) -> None:
        self.name, self.rank = source.name, source.rank
        self._source, self._plugin = source, plugin

    def load(self) -> Iterable[Job | JobLoadError]:
        """Yield the source's jobs, up to its error."""
        try:
            yield from self._source.load()
        except Exception as error:  # noqa: BLE001 - code of a plugin
            yield self._broken(error)

    def find(self, job_name: str) -> Job | JobLoadError | None:
        """Find nothing in a source that raises; `load` tells of its error."""
        try:
            return self._source.find(job_name)
        except Exception as error:  # noqa: BLE001 - code of a plugin
            log.warning("%s", self._broken(error).message)
            return None

    def holds(self, job_dir: Path) -> bool:
        """True if the source has a job in this folder; a source that raises has none."""
        try:
            return self._source.holds(job_dir)
        except Exception:  # noqa: BLE001 - code of a plugin
            return False

    def _broken(self, error: Exception) -> JobSourceError:
        text = error.message if isinstance(error, DeepWorkError) else cause_of(error, self._plugin)
        hint = error.hint if isinstance(error, DeepWorkError) else None
        message = f"job source {self.name!r} of {self._plugin} cannot be read: {text}"
        return JobSourceError(message, job_name=self.name, job_dir=Path(), hint=hint or hint_to_block(self._plugin))


def guarded_store(spec: StateStoreSpec, plugin: Candidate) -> StateStoreSpec:
    """Have errors of `open` told as the plugin's."""
    make = _checked(spec.open, StateStore, plugin, f"`open` of the store {spec.name!r}")  # type: ignore[type-abstract]  # only isinstance
    return replace(spec, open=make)


def guarded_runner(spec: ReviewRunnerSpec, plugin: Candidate) -> ReviewRunnerSpec:
    """Have errors of `create` told as the plugin's."""
    make = _checked(lambda _: spec.create(), ReviewRunner, plugin, f"`create` of the runner {spec.name!r}")  # type: ignore[type-abstract]  # only isinstance
    return replace(spec, create=lambda: make(None))


def findings_of(check: Check, plugin: Candidate) -> list[Finding]:
    """Run a check of a plugin; that it fails, or gives something else than findings, is a finding after the others."""
    subject = f"check {check.name!r}"
    items: list[Finding] = []
    try:
        with stdout_on_stderr(), told_as_fault(plugin, subject):
            items.extend(check.run())  # an error leaves in the list what came before it
    except DeepWorkError as error:
        items.append(Finding(Level.ERROR, error.message, error.hint))
    wrong_items = [item for item in items if not _is_finding(item)]
    if wrong_items:
        text = f"{plugin}: {subject} gave {wrong_items[0]!r:.100}, not a Finding"
        items.append(Finding(Level.ERROR, text, hint_to_block(plugin)))
    return [item for item in items if _is_finding(item)]


def _is_finding(item: object) -> bool:
    return (
        isinstance(item, Finding)
        and item.level in set(Level)
        and isinstance(item.text, str)
        and isinstance(item.cure, str | None)
    )


def _checked(
    make: Callable[[ArgumentT], ItemT], kind: type[ItemT], plugin: Candidate, subject: str
) -> Callable[[ArgumentT], ItemT]:
    """Wrap a function of a plugin that has to give an object of this kind."""

    def checked(argument: ArgumentT) -> ItemT:
        with told_as_fault(plugin, subject):
            item = make(argument)
            if not isinstance(item, kind):
                raise TypeError(f"it gave {type(item).__name__}, not {kind.__name__}")
            return item

    return checked


def place_of(function: Callable[..., object]) -> str:
    """Name file and line of a function, for errors about it that are raised elsewhere."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    return f" ({_place(code.co_filename, code.co_firstlineno, package)})" if code else ""


def _own_place(error: BaseException, package: str) -> str | None:
    """Name file and line of the last frame in a package."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if package and frame.f_globals.get("__name__", "").partition(".")[0] == package:
            return _place(frame.f_code.co_filename, line, package)
    return None


def _place(file: str, line: int, package: str) -> str:
    """Write a place as the author of the plugin knows it: the file from the folder of the package on."""
    parts = PurePath(file).parts
    start = max((index for index, part in enumerate(parts) if part == package), default=len(parts) - 1)
    return f"{'/'.join(parts[start:])}, line {line}"
