"""The hooks of the feature `clients`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl
from deepwork.builtin.clients import COMMANDS

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import Check, Finding, InitStep, Project
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
    """What the hooks of clients call."""
    from deepwork.builtin.clients.hook_tool import hook_tool

    yield hook_tool(project)


@hookimpl
def deepwork_init_steps() -> Iterator[InitStep]:
    """Clients are connected."""
    from deepwork.builtin.clients.init import step

    yield step()
