"""The dependencies of a plan: their names, and that some order of the tasks exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from deepwork_orchestration.errors import OrchestrationError

ItemT = TypeVar("ItemT")


def grouped(pairs: Iterable[tuple[str, ItemT]]) -> dict[str, list[ItemT]]:
    """Return by its first half what pairs have as their second, such as the tasks that each task waits for."""
    groups: dict[str, list[ItemT]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


def check_graph(names: Sequence[str], dependencies: Mapping[str, Sequence[str]]) -> None:
    """Refuse a plan that could never be finished, or whose names mean nothing.

    Raises:
        OrchestrationError: DUPLICATE_TASK_NAME, SELF_DEPENDENCY, UNKNOWN_DEPENDENCY or DEPENDENCY_CYCLE.
    """
    known: set[str] = set()
    for name in names:
        if name in known:
            raise OrchestrationError(
                "DUPLICATE_TASK_NAME", f"two tasks are called {name!r}", "Give each task a name of its own."
            )
        known.add(name)
    for name, needed in dependencies.items():
        _check_names(name, needed, known)
    _check_order(dependencies)


def _check_names(name: str, needed: Sequence[str], known: set[str]) -> None:
    if name in needed:
        raise OrchestrationError(
            "SELF_DEPENDENCY", f"task {name!r} depends on itself", "Leave it out of its own depends_on."
        )
    unknown = [dependency for dependency in needed if dependency not in known]
    if unknown:
        raise OrchestrationError(
            "UNKNOWN_DEPENDENCY",
            f"task {name!r} depends on {unknown[0]!r}, which is not in the plan",
            "depends_on takes names of tasks of the same plan.",
        )


def _check_order(dependencies: Mapping[str, Sequence[str]]) -> None:
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        # graphlib names each task before its dependent, and repeats the first at the end.
        cycle = " -> ".join(map(repr, reversed(error.args[1])))
        raise OrchestrationError(
            "DEPENDENCY_CYCLE",
            f"these tasks wait for each other, each for the next: {cycle}",
            "Remove one of these dependencies.",
        ) from None
