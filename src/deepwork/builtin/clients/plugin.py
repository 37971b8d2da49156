"""The hooks of the feature `clients`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from deepwork import hookimpl
from deepwork.builtin.clients import COMMANDS, NOTHING

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import Check, Finding, InitStep, Project, ToolCall
    from deepwork.builtin.clients.hook_tool import HookTool
    from deepwork.ports.records import UnlistedTool


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """The commands of `COMMANDS`."""
    yield from (spec.load() for spec in COMMANDS.values())


@hookimpl
def deepwork_checks(project: Project) -> Iterator[Check]:
    """Which clients start deepwork, and whether it starts."""
    from deepwork.api import Check

    def run() -> Iterator[Finding]:
        from deepwork.builtin.clients.checks import check_clients

        yield from check_clients(project.root)

    yield Check("clients", run)


@hookimpl
def deepwork_unlisted_tools(project: Project) -> Iterator[UnlistedTool]:
    """What the hooks of clients call; it is imported by the first of them, because many servers see none."""
    from deepwork.ports.records import UnlistedTool

    @cache
    def tool() -> HookTool:
        from deepwork.builtin.clients.hook_tool import HookTool

        return HookTool(project)

    async def answer(call: ToolCall, arguments: Mapping[str, Any]) -> str:
        return await tool().answer(call, arguments)

    yield UnlistedTool(name="hook", answer=answer, silence=NOTHING)


@hookimpl
def deepwork_init_steps() -> Iterator[InitStep]:
    """Clients are connected."""
    from deepwork.builtin.clients.init import step

    yield step()
