"""The hooks: ten tools, a command, blockers for the inbox, and live events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import HttpApp, InboxSource, PluginContext, ToolSet


@hookimpl
def deepwork_tool_sets(context: PluginContext) -> Iterator[ToolSet]:
    """The set `tracking`."""
    from deepwork_tracking.tools import tool_set

    yield tool_set(context)


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """`deepwork track`."""
    from deepwork_tracking.cli import track

    yield track


@hookimpl
def deepwork_inbox(context: PluginContext) -> Iterator[InboxSource]:
    """The issues that require a human review."""
    from deepwork_tracking.inbox import BlockerInbox

    yield BlockerInbox(context)


@hookimpl
def deepwork_http(context: PluginContext) -> Iterator[HttpApp]:
    """The events, for dashboards: `/plugins/tracking/events`."""
    from deepwork.api import HttpApp

    def make() -> object:
        from deepwork_tracking.events import EventsApp

        return EventsApp(context)

    yield HttpApp(make)
