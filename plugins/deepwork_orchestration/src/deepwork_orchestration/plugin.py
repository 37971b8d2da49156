"""The hooks: tools, a command, a check, messages for `deepwork hook`, claims, and what waits for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import AgentMail, Check, InboxSource, PluginContext, ToolSet
    from deepwork.ports.records import ClaimKeeper


@hookimpl
def deepwork_tool_sets(context: PluginContext) -> Iterator[ToolSet]:
    """The set `orchestration`."""
    from deepwork_orchestration.tools import tool_set

    yield tool_set(context)


@hookimpl
def deepwork_agent_mail(context: PluginContext) -> Iterator[AgentMail]:
    """The messages of the tools `message_send` and `message_broadcast`."""
    from deepwork_orchestration.mail import agent_mail

    yield agent_mail(context)


@hookimpl
def deepwork_claims(context: PluginContext) -> Iterator[ClaimKeeper]:
    """The claims of agents that `deepwork run` starts one after the other."""
    from deepwork_orchestration.session_claims import claim_keeper

    yield claim_keeper(context)


@hookimpl
def deepwork_inbox(context: PluginContext) -> Iterator[InboxSource]:
    """Tasks that only a person can do, and messages to people."""
    from deepwork_orchestration.inbox import PlanInbox

    yield PlanInbox(context)


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """`deepwork plan`."""
    from deepwork_orchestration.cli import plan

    yield plan


@hookimpl
def deepwork_checks(context: PluginContext) -> Iterator[Check]:
    """The check `worktrees`."""
    from deepwork_orchestration.removed import check

    yield check(context)
