"""The ten tools, as agents see them. Their parts are imported at the first call, so that servers start fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

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
    check_metadata,
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
    stored,
)

INSTRUCTIONS = (
    "Tracking records who did what and why. Orchestrator: start a workflow, start each phase before its subagents, "
    "complete both. Subagent: start a task, work, log decisions, issues and milestones, complete the task: that lists "
    "the files it changed. get_context has blockers."
)


class TrackingTools:
    """The functions behind the tools."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._database = TrackingDatabase(context)

    async def start_workflow(
        self,
        call: ToolCall,
        name: Name,
        objective: Annotated[Text, Field(description="Measurable goal")],
        profile: Annotated[Profile | None, Field(description="Default: standard")] = None,
        total_phases: Annotated[PhaseCount | None, Field(description="Expected; default 2, 3 or 4 by profile")] = None,
        scope: Annotated[OptionalText, Field(description="Included/excluded")] = None,
        constraints: Annotated[OptionalText, Field(description="Technical limits")] = None,
    ) -> dict[str, Any]:
        """Start tracking a workflow. Orchestrator only, once."""
        from deepwork_tracking.workflows import start_workflow

        return await self._write(
            call,
            start_workflow,
            name=name,
            objective=objective,
            profile=profile or "standard",
            total_phases=total_phases,
            scope=scope,
            constraints=constraints,
        )

    async def complete_workflow(
        self,
        call: ToolCall,
        workflow_id: Id,
        status: WorkflowEnd,
        summary: Text,
        achievements: Texts = None,
        limitations: Texts = None,
    ) -> dict[str, Any]:
        """Finalize a workflow, and get its metrics."""
        from deepwork_tracking.workflows import complete_workflow

        return await self._write(
            call,
            complete_workflow,
            workflow_id=workflow_id,
            status=status,
            summary=summary,
            achievements=achievements,
            limitations=limitations,
        )

    async def get_context(
        self,
        workflow_id: Id,
        include: list[Section],
        filter: Annotated[Filter | None, Field(description="Only rows of this phase, agent, time")] = None,  # noqa: A002 - the specification's name
    ) -> dict[str, Any]:
        """Query the state of a workflow: phases, tasks, decisions, milestones, and blockers that wait for a human."""
        from deepwork_tracking.context import get_context

        rows = filter or Filter()
        return await self._database.read(lambda transaction: get_context(transaction, workflow_id, include, rows))

    async def start_phase(
        self,
        call: ToolCall,
        workflow_id: Id,
        number: PhaseNumber,
        name: Name,
        description: OptionalText = None,
        is_parallel: Annotated[Flag | None, Field(description="Can tasks run in parallel? Default: false")] = None,
    ) -> dict[str, Any]:
        """Start a phase before launching its subagents. A number that exists gives the existing phase."""
        from deepwork_tracking.phases import start_phase

        return await self._write(
            call,
            start_phase,
            workflow_id=workflow_id,
            number=number,
            name=name,
            description=description,
            is_parallel=bool(is_parallel),
        )

    async def complete_phase(
        self, call: ToolCall, phase_id: Id, status: PhaseEnd, summary: OptionalText = None
    ) -> dict[str, Any]:
        """End a phase after all of its tasks are done."""
        from deepwork_tracking.phases import complete_phase

        return await self._write(call, complete_phase, phase_id=phase_id, status=status, summary=summary)

    async def start_task(
        self,
        call: ToolCall,
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
        from deepwork_tracking.tasks import NewTask
        from deepwork_tracking.work import start_task

        new = NewTask(
            name=name,
            goal=goal,
            areas=areas or [],
            workflow_id=workflow_id,
            phase_id=phase_id,
            caller_type=caller_type,
            agent_name=agent_name,
            parent_task_id=parent_task_id,
        )
        return await start_task(self._context, self._database, new, path, call.principal)

    async def complete_task(
        self,
        call: ToolCall,
        task_id: Id,
        status: TaskEnd,
        outcome: Outcome,
        metadata: TaskMetadata | None = None,
    ) -> dict[str, Any]:
        """Complete your task. Lists the files that changed since its start, and checks them against its areas."""
        from deepwork_tracking.tasks import EndOfTask
        from deepwork_tracking.work import complete_task

        end = EndOfTask(task_id, status, outcome, metadata or TaskMetadata())
        return await complete_task(self._context, self._database, end, call.principal)

    async def log_decision(
        self,
        call: ToolCall,
        task_id: Id,
        category: Category,
        question: Text,
        chosen: Text,
        reasoning: Text,
        options_considered: Texts = None,
        trade_offs: OptionalText = None,
    ) -> dict[str, Any]:
        """Record an architectural decision of a task."""
        return await self._log(
            call,
            "decisions",
            task_id=task_id,
            category=stored(category),
            question=question,
            options_considered=options_considered or [],
            chosen=chosen,
            reasoning=reasoning,
            trade_offs=trade_offs,
        )

    async def log_issue(
        self,
        call: ToolCall,
        task_id: Id,
        type: IssueType,  # noqa: A002 - the specification's name
        description: Text,
        resolution: Annotated[Text, Field(description="What you did, or tried")],
        requires_human_review: Annotated[Flag | None, Field(description="Makes it a blocker")] = None,
    ) -> dict[str, Any]:
        """Record a problem of a task."""
        return await self._log(
            call,
            "issues",
            task_id=task_id,
            type=stored(type),
            description=description,
            resolution=resolution,
            requires_human_review=bool(requires_human_review),
        )

    async def log_milestone(
        self,
        call: ToolCall,
        task_id: Id,
        message: Message,
        progress: Annotated[Progress | None, Field(description="0-100")] = None,
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Record progress of a task."""
        check_metadata(metadata)
        values = {"message": message, "progress": progress, "metadata": metadata}
        return await self._log(call, "milestones", task_id=task_id, **values)

    async def _log(self, call: ToolCall, kind: str, **values: Any) -> dict[str, Any]:
        from deepwork_tracking.log import log

        return await self._write(call, log, kind=kind, **values)

    async def _write(self, call: ToolCall, change: Callable[..., dict[str, Any]], **values: Any) -> dict[str, Any]:
        self._database.check(values)
        return await self._database.write(lambda transaction: change(transaction, principal=call.principal, **values))


def tool_set(context: PluginContext) -> ToolSet:
    """Make the tools for a project."""
    tools = TrackingTools(context)
    return ToolSet(
        name="tracking",
        prefix="track_",
        instructions=INSTRUCTIONS,
        tools=[
            ToolSpec("start_workflow", tools.start_workflow, title="Start tracking a workflow"),
            ToolSpec(
                "complete_workflow", tools.complete_workflow, title="Complete a tracked workflow", idempotent=True
            ),
            ToolSpec(
                "get_context", tools.get_context, title="Query a tracked workflow", read_only=True, idempotent=True
            ),
            ToolSpec("start_phase", tools.start_phase, title="Start a phase", idempotent=True),
            ToolSpec("complete_phase", tools.complete_phase, title="Complete a phase"),
            ToolSpec("start_task", tools.start_task, title="Start a task"),
            ToolSpec("complete_task", tools.complete_task, title="Complete a task"),
            ToolSpec("log_decision", tools.log_decision, title="Record a decision"),
            ToolSpec("log_issue", tools.log_issue, title="Record an issue"),
            ToolSpec("log_milestone", tools.log_milestone, title="Record a milestone"),
        ],
    )
