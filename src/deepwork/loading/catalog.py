"""Items by name: a name twice or a name that nobody offers is an error that says who and how to cure it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from deepwork.errors import NameClash, UnknownName
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import PluginStatus, Provided
from deepwork.ports.records import ToolSet, ToolSpec

ItemT = TypeVar("ItemT")

# Distributions of this project that offer a name; for the error of somebody who has not installed one.
DISTRIBUTIONS = {"claude": "deepwork-claude-runner", "review": "deepwork-review"}


def by_name(
    kind: str,
    provided: Iterable[Provided[ItemT]],
    name: Callable[[ItemT], str],
    cure: Callable[[Candidate], str] | None = None,
) -> dict[str, Provided[ItemT]]:
    """Sort items by name.

    Raises:
        NameClash: Two plugins offer one name, whether it is selected or not.
    """
    found: dict[str, Provided[ItemT]] = {}
    for one in provided:
        other = found.setdefault(name(one.item), one)
        if other is not one:
            raise clash(kind, name(one.item), other.by, one.by, cure)
    return dict(sorted(found.items()))


def clash(
    kind: str, name: str, first: Candidate, second: Candidate, cure: Callable[[Candidate], str] | None = None
) -> NameClash:
    """Make the error for a name that two plugins offer."""
    foreign = second if first.builtin else first
    block = f"plugins: {{block: [{foreign.name if foreign.builtin else foreign.distribution}]}}"
    line = cure(second if first.builtin else first) if cure else block
    return NameClash(
        f"{kind} {name!r} is offered twice:\n  - {first}\n  - {second}",
        hint=f"add to .deepwork/config.yml ->  {line}",
    )


def named_tools(
    sets: Iterable[Provided[ToolSet]], prefixes: Mapping[str, str]
) -> Iterator[tuple[str, Provided[ToolSpec]]]:
    """Give every tool its name: canonical when its set is served alone, prefixed beside others.

    Raises:
        NameClash: Two tools would have one name.
    """
    served = list(sets)
    owners: dict[str, Provided[ToolSet]] = {}
    for one in served:
        own = one.item.prefix if len(served) > 1 else None
        prefix = prefixes.get(one.item.name, own or "")
        for spec in one.item.tools:
            name = f"{prefix}{spec.name}"
            other = owners.setdefault(name, one)
            if other is not one or sum(f"{prefix}{each.name}" == name for each in one.item.tools) > 1:
                foreign = one if other.by.builtin else other
                line = f"tools: {{prefix: {{{foreign.item.name}: {foreign.item.name}_}}}}"
                cure = None if other is one else lambda _, line=line: line
                raise clash("tool name", name, other.by, one.by, cure)
            yield name, Provided(spec, one.by)


def choose(
    kind: str, name: str, available: dict[str, ItemT], *, option: str, failures: Iterable[PluginStatus] = ()
) -> ItemT:
    """Pick one by name.

    Raises:
        UnknownName: Nobody offers it; the error names what there is, and plugins that could not be loaded.
    """
    if name in available:
        return available[name]
    message = f"no {kind} {name!r} (from {option}); available: {', '.join(available) or 'none'}"
    for status in failures:
        message += f"\n{status.plugin} might offer it, but could not be loaded: {status.cause}"
    distribution = DISTRIBUTIONS.get(name)
    hint = f"Install the distribution {distribution}." if distribution else f"Choose one of these with {option}."
    raise UnknownName(message, hint=hint)
