"""Items selected by name; the errors about duplicate and unknown names say which plugins are involved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from deepwork.errors import NameClash, PluginError, UnknownName
from deepwork.loading.discovery import Candidate
from deepwork.loading.faults import hint_to_keep_one
from deepwork.loading.manager import PluginStatus, Provided
from deepwork.ports.records import ToolSet, ToolSpec, UnlistedTool

ItemT = TypeVar("ItemT")

# The distribution of this project that offers a name, for the error when it is not installed.
DISTRIBUTIONS = {
    "claude": "deepwork-claude-runner",
    "orchestration": "deepwork-orchestration",
    "review": "deepwork-review",
}


def by_name(kind: str, provided: Iterable[Provided[ItemT]], name: Callable[[ItemT], str]) -> dict[str, Provided[ItemT]]:
    """Sort items by name.

    Raises:
        NameClash: Two plugins offer the same name, whether it is selected or not.
    """
    items: dict[str, Provided[ItemT]] = {}
    for item in provided:
        first = items.setdefault(name(item.item), item)
        if first is not item:
            raise clash(kind, name(item.item), first.by, item.by)
    return dict(sorted(items.items()))


def clash(kind: str, name: str, first: Candidate, second: Candidate, hint: str | None = None) -> NameClash:
    """Make the error for a name that two plugins offer, or one plugin twice."""
    own = f"Rename one of the two {kind.removesuffix(' name')}s in this plugin."
    return NameClash(
        f"{kind} {name!r} is offered twice:\n  - {first}\n  - {second}",
        hint=hint or (own if first == second else hint_to_keep_one([first, second])),
    )


def named_tools(
    sets: Iterable[Provided[ToolSet]], prefixes: Mapping[str, str]
) -> Iterator[tuple[str, Provided[ToolSpec]]]:
    """Yield every tool with its name: its own if its set is served alone, else with the set's prefix.

    Raises:
        NameClash: Two tools would have the same name.
    """
    served = list(sets)
    owners: dict[str, Provided[ToolSet]] = {}
    for tool_set in served:
        own_prefix = tool_set.item.prefix if len(served) > 1 else None
        prefix = prefixes.get(tool_set.item.name, own_prefix or "")
        for spec in tool_set.item.tools:
            name = f"{prefix}{spec.name}"
            owner = owners.setdefault(name, tool_set)
            if owner is not tool_set or sum(f"{prefix}{tool.name}" == name for tool in tool_set.item.tools) > 1:
                foreign = tool_set if owner.by.builtin else owner
                line = f"tools: {{prefix: {{{foreign.item.name}: {foreign.item.name}_}}}}"
                hint = (
                    f"Give one set a prefix in .deepwork/config.yml (below the key `tools` if it is there) ->  {line}"
                )
                raise clash("tool name", name, owner.by, tool_set.by, None if owner is tool_set else hint)
            yield name, Provided(spec, tool_set.by)


def check_unlisted(
    unlisted: Mapping[str, Provided[UnlistedTool]], listed: Iterable[tuple[str, Provided[ToolSpec]]]
) -> None:
    """Refuse a listed tool with the name of an unlisted one.

    Raises:
        NameClash: There is one.
    """
    for name, tool in listed:
        if name in unlisted:
            hint = "Give the set of the tool a prefix, with tools.prefix in .deepwork/config.yml, or rename the tool."
            raise clash("tool name", name, unlisted[name].by, tool.by, hint)


def choose_tool_sets(
    names: Iterable[str],
    available: dict[str, Provided[ToolSet]],
    *,
    option: str,
    left_out: Iterable[PluginStatus] = (),
) -> list[Provided[ToolSet]]:
    """Select tool sets, each whole (`SET`) or a subset of its tools (`SET:SUBSET`). Two subsets of a set are joined.

    Raises:
        UnknownName: No plugin offers the set, or the set has no such subset.
        PluginError: A subset names a tool that its set does not have.
    """
    subsets: dict[str, list[str]] = {}
    for name in names:
        set_name, _, subset = name.partition(":")
        subsets.setdefault(set_name, []).append(subset)
    chosen = {name: choose("tool set", name, available, option=option, left_out=left_out) for name in subsets}
    return [
        provided if "" in subsets[name] else Provided(_narrowed(provided, subsets[name], option), provided.by)
        for name, provided in chosen.items()
    ]


def _narrowed(provided: Provided[ToolSet], subsets: Sequence[str], option: str) -> ToolSet:
    tool_set = provided.item
    names = {
        tool
        for subset in subsets
        for tool in choose(f"subset of the tool set {tool_set.name!r}", subset, dict(tool_set.subsets), option=option)
    }
    unknown = names - {spec.name for spec in tool_set.tools}
    if unknown:
        raise PluginError(f"{provided.by}: a subset of the tool set {tool_set.name!r} has no tool {min(unknown)!r}")
    return replace(tool_set, tools=[spec for spec in tool_set.tools if spec.name in names])


def choose(
    kind: str, name: str, available: dict[str, ItemT], *, option: str, left_out: Iterable[PluginStatus] = ()
) -> ItemT:
    """Select an item by name.

    Raises:
        UnknownName: No plugin offers it. The error lists the available names, and plugins that were not loaded.
    """
    if name in available:
        return available[name]
    message = f"no {kind} {name!r} (from {option}); available: {', '.join(available) or 'none'}"
    offered = [key for key, item in available.items() if isinstance(item, Provided) and item.by.name == name]
    if offered:
        message += f"; {name!r} is the name of a plugin, which offers: {', '.join(offered)}"
    for status in left_out:
        reason = f"could not be loaded: {status.cause}" if status.cause else "is left out"
        message += f"\n{status.plugin} might offer it, but {reason}"
    distribution = DISTRIBUTIONS.get(name)
    hint = f"Install the distribution {distribution}." if distribution else f"Choose one of these with {option}."
    raise UnknownName(message, hint=hint)
