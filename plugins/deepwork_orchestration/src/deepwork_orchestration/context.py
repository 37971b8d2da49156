"""The tool that gives an agent back what it needs to know of its task."""

from __future__ import annotations

from typing import Any

from deepwork_orchestration import claims, context_budget
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import Id, Include, Ordinal
from deepwork_orchestration.models import Checkpoint, Mapped, Task, Workflow
from deepwork_orchestration.states import DONE

SUMMARY = 200
OUTCOME = 300
LISTED_FILES = 10


def task_load_context(act: Act, task_id: Id, include: Include | None = None, max_tokens: Ordinal = 8000) -> Mapped:
    """Load all that is needed to go on with a task, within a budget of tokens. Call it after losing your context."""
    task = act.records.task(task_id)
    claims.notice_binding(act, task)
    return context_budget.fit(load(act, task, include or Include()), max_tokens)


def load(act: Act, task: Task, chosen: Include) -> Mapped:
    """Give the whole context, however long it is."""
    sections: Mapped = {
        "workflow": _workflow(act.records.workflow(task.workflow_id), chosen),
        "current_task": _current_task(task, _checkpoints(act, task, chosen)),
        "prior_tasks": [],
    }
    if chosen.prior_task_outcomes:
        before, _ = act.records.tasks_before(task, 10**6)
        sections["prior_tasks"] = [_prior(other, is_full=chosen.prior_task_full) for other in before]
    siblings = act.records.tasks_beside(task) if chosen.sibling_status else []
    if siblings:
        newest = act.records.newest_summaries(task)
        sections["sibling_tasks"] = [_sibling(other, newest.get(other.id)) for other in siblings]
    if chosen.dependency_outcomes:
        needed = [other for other in act.records.dependencies(task.id) if other.status in DONE]
        sections["dependency_outcomes"] = [
            {"task_id": other.id, "task_name": other.name, "outcome": other.outcome or ""} for other in needed
        ]
    return sections


def _workflow(workflow: Workflow, chosen: Include) -> Mapped:
    section: Mapped = {"id": workflow.id, "name": workflow.name, "source_type": workflow.source_type}
    if chosen.workflow_summary:
        section["source_summary"] = workflow.source_content
    if chosen.workflow_plan:
        section["plan_summary"] = workflow.plan_summary or ""
    return {**section, "status": workflow.status, "max_parallel_tasks": workflow.max_parallel_tasks}


def _current_task(task: Task, checkpoints: list[Mapped]) -> Mapped:
    return {
        "id": task.id,
        "name": task.name,
        "description": task.description or "",
        "plan": task.plan,
        "context": task.context,
        "checkpoints": checkpoints,
        "status": task.shown_status,
    }


def _checkpoints(act: Act, task: Task, chosen: Include) -> list[Mapped]:
    """Give all checkpoints; older ones than the newest few without what they say in detail."""
    checkpoints = act.records.last_checkpoints(task.id, None)
    if chosen.all_checkpoints:
        return [checkpoint.reply() for checkpoint in checkpoints]
    detailed_from = len(checkpoints) - chosen.recent_checkpoints
    return [
        _detailed(checkpoint) if index >= detailed_from else context_budget.without_detail(checkpoint.reply())
        for index, checkpoint in enumerate(checkpoints)
    ]


def _detailed(checkpoint: Checkpoint) -> Mapped:
    files: list[Any] | None = checkpoint.files_changed
    if files and len(files) > LISTED_FILES:
        files = [*files[:LISTED_FILES], f"and {len(files) - LISTED_FILES} more"]
    return {**checkpoint.reply(), "files_changed": files}


def _prior(task: Task, *, is_full: bool) -> Mapped:
    outcome = task.outcome or ""
    prior: Mapped = {"id": task.id, "name": task.name, "outcome": outcome if is_full else outcome[:OUTCOME]}
    if is_full:
        prior["outcome_detail"] = task.outcome_detail
    return {**prior, "status": task.shown_status}


def _sibling(task: Task, newest_summary: str | None) -> Mapped:
    summary = task.outcome or newest_summary
    return {**task.brief(), **({"brief_summary": summary[:SUMMARY]} if summary else {})}
