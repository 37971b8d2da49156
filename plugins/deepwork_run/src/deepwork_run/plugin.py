"""The hooks: three agents, two commands, and what runs have for the inbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command

    from deepwork.api import InboxSource, PluginContext
    from deepwork.ports.agent import AgentSpec


@hookimpl
def deepwork_agents(context: PluginContext) -> Iterator[AgentSpec]:
    """The agents `claude`, `codex` and `scripted`."""
    from deepwork.ports.agent import AgentSpec
    from deepwork_run.agents.claude import ClaudeAgent
    from deepwork_run.agents.codex import CodexAgent
    from deepwork_run.agents.scripted import ScriptedAgent
    from deepwork_run.settings import RunSettings

    settings = context.settings(RunSettings)
    claude = lambda: ClaudeAgent(context, settings)  # noqa: E731 - one line each
    yield AgentSpec(name="claude", create=claude, says_dollars=True, has_hooks=True)
    yield AgentSpec(name="codex", create=lambda: CodexAgent(context, settings))
    yield AgentSpec(name="scripted", create=lambda: ScriptedAgent(context, settings))


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """`deepwork run` and `deepwork runs`."""
    from deepwork_run.cli import run, runs

    yield run
    yield runs


@hookimpl
def deepwork_inbox(context: PluginContext) -> Iterator[InboxSource]:
    """Runs that ask whether to go on."""
    from deepwork_run.inbox import RunInbox

    yield RunInbox(context)
