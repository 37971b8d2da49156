"""The ten tools, as agents see them. Their parts are imported at the first call, so that servers start fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Protocol

from pydantic import Field

from deepwork.api import PluginContext, ToolCall, ToolSet, ToolSpec
from deepwork_tracking.arguments import (
    Filter,
    Flag,
    Id,
    Message,
    Name,
    OptionalText,
    Outcome,
    PhaseCount,
    PhaseNumber,
    Progress,
    TaskMetadata,
    Text,
    Texts,
)
from deepwork_tracking.database import TrackingDatabase
from deepwork_tracking.words import (
    CallerType,
    Category,
    IssueType,
    PhaseEnd,
    Profile,
    Section,
    TaskEnd,
    WorkflowEnd,
)

INSTRUCTIONS = (
    "Tracking records who did what and why. Orchestrator: start a workflow, start each phase before its subagents, "
    "complete both. Subagent: start a task, work, log decisions, issues and milestones, complete the task: that lists "
    "the files it changed. get_context has blockers."
)


class Tools(Protocol):
    """The arguments of the tools, and their descriptions; the functions of these names do the work."""

    def start_workflow(
        self,
        /,
        name: Name,
        objective: Annotated[Text, Field(description="Measurable goal")],
        profile: Annotated[Profile | None, Field(description="Default: standard")] = None,
        total_phases: Annotated[PhaseCount | None, Field(description="Expected; default 2, 3 or 4 by profile")] = None,
        scope: Annotated[OptionalText, Field(description="Included/excluded")] = None,
        constraints: Annotated[OptionalText, Field(description="Technical limits")] = None,
    ) -> dict[str, Any]:
        """Start tracking a workflow. Orchestrator only, once."""

    def complete_workflow(
        self,
        /,
        workflow_id: Id,
        status: WorkflowEnd,
        summary: Text,
        achievements: Texts = None,
        limitations: Texts = None,
    ) -> dict[str, Any]:
        """Finalize a workflow, and get its metrics."""

    def get_context(
        self,
        /,
        workflow_id: Id,
        include: list[Section],
        filter: Annotated[Filter | None, Field(description="Only rows of this phase, agent, time")] = None,  # noqa: A002 - the specification's name
    ) -> dict[str, Any]:
        """Query the state of a workflow: phases, tasks, decisions, milestones, and blockers that wait for a human."""

    def start_phase(
        self,
        /,
        workflow_id: Id,
        number: PhaseNumber,
        name: Name,
        description: OptionalText = None,
        is_parallel: Annotated[Flag | None, Field(description="Can tasks run in parallel? Default: false")] = None,
    ) -> dict[str, Any]:
        """Start a phase before launching its subagents. A number that exists gives the existing phase."""

    def complete_phase(self, /, phase_id: Id, status: PhaseEnd, summary: OptionalText = None) -> dict[str, Any]:
        """End a phase after all of its tasks are done."""

    def start_task(
        self,
        /,
        workflow_id: Id,
        phase_id: Id,
        caller_type: CallerType,
        name: Name,
        goal: Text,
        agent_name: Annotated[Name | None, Field(description="Required for a subagent")] = None,
        parent_task_id: Annotated[Id | None, Field(description="For nested tasks")] = None,
        areas: Annotated[Texts, Field(description="Code areas touched: folders, file names or globs")] = None,
        path: Annotated[OptionalText, Field(description="Folder of the work. Default: the project")] = None,
    ) -> dict[str, Any]:
        """Start a task at the beginning of your work. Notes the state of git, so that your changes are known later."""

    def complete_task(
        self,
        /,
        task_id: Id,
        status: TaskEnd,
        outcome: Outcome,
        metadata: TaskMetadata | None = None,
    ) -> dict[str, Any]:
        """Complete your task. Lists the files that changed since its start, and checks them against its areas."""

    def log_decision(
        self,
        /,
        task_id: Id,
        category: Category,
        question: Text,
        chosen: Text,
        reasoning: Text,
        options_considered: Texts = None,
        trade_offs: OptionalText = None,
    ) -> dict[str, Any]:
        """Record an architectural decision of a task."""

    def log_issue(
        self,
        /,
        task_id: Id,
        type: IssueType,  # noqa: A002 - the specification's name
        description: Text,
        resolution: Annotated[Text, Field(description="What you did, or tried")],
        requires_human_review: Annotated[Flag | None, Field(description="Makes it a blocker")] = None,
    ) -> dict[str, Any]:
        """Record a problem of a task."""

    def log_milestone(
        self,
        /,
        task_id: Id,
        message: Message,
        progress: Annotated[Progress | None, Field(description="0-100")] = None,
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Record progress of a task."""


def tool_set(context: PluginContext) -> ToolSet:
    """Make the tools for a project."""
    tool = partial(_tool, context, TrackingDatabase(context))
    return ToolSet(
        name="tracking",
        prefix="track_",
        instructions=INSTRUCTIONS,
        tools=[
            tool("workflows", Tools.start_workflow, title="Start tracking a workflow"),
            tool("workflows", Tools.complete_workflow, title="Complete a tracked workflow", idempotent=True),
            tool("context", Tools.get_context, title="Query a tracked workflow", read_only=True, idempotent=True),
            tool("phases", Tools.start_phase, title="Start a phase", idempotent=True),
            tool("phases", Tools.complete_phase, title="Complete a phase"),
            tool("work", Tools.start_task, title="Start a task"),
            tool("work", Tools.complete_task, title="Complete a task"),
            tool("log", Tools.log_decision, title="Record a decision"),
            tool("log", Tools.log_issue, title="Record an issue"),
            tool("log", Tools.log_milestone, title="Record a milestone"),
        ],
    )


def _tool(
    context: PluginContext, database: TrackingDatabase, module: str, fn: Callable[..., Any], **hints: Any
) -> ToolSpec:
    """Describe a tool whose work is done by the function of its name in a module of this plugin."""

    async def run(call: ToolCall, arguments: Mapping[str, Any]) -> dict[str, Any]:
        do = getattr(import_module(f"deepwork_tracking.{module}"), fn.__name__)
        result: dict[str, Any]
        if module == "work":
            result = await do(context, database, call.principal, **arguments)
        elif module == "context":
            result = await database.read(lambda transaction: do(transaction, **arguments))
        else:
            database.check(arguments)
            result = await database.write(lambda transaction: do(transaction, principal=call.principal, **arguments))
        return result

    return ToolSpec(fn.__name__, fn, run=run, **hints)
