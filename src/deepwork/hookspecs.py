"""The hooks: how a plugin declares what it has.

Every hook is synchronous, and gives an iterable of records (`yield` is welcome) or nothing. A server or a command calls
it at most once. A hook connects to nothing and imports no large library: all waiting happens in methods of the objects
that it gives. Results are sorted by name, never by the order of installation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pluggy import HookspecMarker

if TYPE_CHECKING:
    from click import Command

    from deepwork.engine.engine import Engine
    from deepwork.ports.agent import AgentSpec
    from deepwork.ports.context import PluginContext
    from deepwork.ports.inbox import InboxSource
    from deepwork.ports.job_source import JobSource
    from deepwork.ports.proofs import Prover
    from deepwork.ports.records import (
        AgentMail,
        Check,
        ClaimKeeper,
        HttpApp,
        InitStep,
        ReviewRunnerSpec,
        StateStoreSpec,
        ToolSet,
        TransportSpec,
        UnlistedTool,
    )
    from deepwork.project.access import Project

hookspec = HookspecMarker("deepwork")


@hookspec
def deepwork_job_sources(context: PluginContext) -> Iterable[JobSource]:  # type: ignore[empty-body]
    """Offer places that have jobs. All are used, by rank, then by name."""


@hookspec
def deepwork_state_stores(context: PluginContext) -> Iterable[StateStoreSpec]:  # type: ignore[empty-body]
    """Offer stores for sessions. One is selected by name (`--state-store`), and only that one is opened."""


@hookspec
def deepwork_review_runners(context: PluginContext) -> Iterable[ReviewRunnerSpec]:  # type: ignore[empty-body]
    """Offer review runners. One is selected by name (`--external-runner`); without one it is `self`."""


@hookspec
def deepwork_provers(context: PluginContext) -> Iterable[Prover]:  # type: ignore[empty-body]
    """Offer what tries reviewers on broken work before their passes count (`quality_gate.prove`). There can be one."""


@hookspec
def deepwork_tool_sets(context: PluginContext, engine: Engine) -> Iterable[ToolSet]:  # type: ignore[empty-body]
    """Offer tools, resources and prompts. All sets are served, or those chosen by name (`--tools`)."""


@hookspec
def deepwork_unlisted_tools(context: PluginContext, project: Project) -> Iterable[UnlistedTool]:  # type: ignore[empty-body]
    """Offer tools that a server answers and never lists: programs call them, and agents do not see them."""


@hookspec
def deepwork_agents(context: PluginContext) -> Iterable[AgentSpec]:  # type: ignore[empty-body]
    """Offer agents that work on a session by themselves. Commands such as `deepwork run --with` choose by name."""


@hookspec
def deepwork_claims(context: PluginContext) -> Iterable[ClaimKeeper]:  # type: ignore[empty-body]
    """Offer what keeps claims of agents on shared work, while a command such as `deepwork run` starts them in turn."""


@hookspec
def deepwork_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Offer commands for the terminal: `click.Command` objects, called as `deepwork NAME`.

    The core's own names win; of two plugins with one name neither is shown.
    """


@hookspec
def deepwork_checks(context: PluginContext, project: Project) -> Iterable[Check]:  # type: ignore[empty-body]
    """Offer checks for `deepwork doctor`. They run one after another, and must end by themselves."""


@hookspec
def deepwork_http(  # type: ignore[empty-body]
    context: PluginContext, engine: Engine, project: Project
) -> Iterable[HttpApp]:
    """Offer one ASGI application, which is served at `/plugins/<plugin>/` over HTTP, and never over stdio."""


@hookspec
def deepwork_agent_mail(context: PluginContext) -> Iterable[AgentMail]:  # type: ignore[empty-body]
    """Offer messages to agents. `deepwork hook` hands them over in the client sessions that these agents are."""


@hookspec
def deepwork_inbox(context: PluginContext, project: Project) -> Iterable[InboxSource]:  # type: ignore[empty-body]
    """Offer one source of what waits for a person, for `deepwork inbox`, notifications and dashboards."""


@hookspec
def deepwork_transports() -> Iterable[TransportSpec]:  # type: ignore[empty-body]
    """Offer transports for `deepwork serve`, beside stdio. One is selected by name (`--transport`)."""


@hookspec
def deepwork_init_steps() -> Iterable[InitStep]:  # type: ignore[empty-body]
    """Offer steps for `deepwork init`, with options of their own. All are done, in the order of their names."""
