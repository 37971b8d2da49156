"""The tool that gives an agent back what it needs to know of its task."""

from __future__ import annotations

from typing import Any

from deepwork_orchestration import claims, context_budget
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import MAX_NUMBER, Id, Include, Ordinal, compact
from deepwork_orchestration.context_budget import shortened
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Checkpoint, Mapped, Task, Workflow, shown_status

SUMMARY = 200
OUTCOME = 300
LISTED_FILES = 10
# So many checkpoints with all they say are read at once.
PAGE = 5


def task_load_context(act: Act, task_id: Id, include: Include | None = None, max_tokens: Ordinal = 8000) -> Mapped:
    """Load all that is needed to go on with a task, within a budget of tokens. Call it after losing your context."""
    task = act.records.task(task_id)
    claims.notice_binding(act, task)
    return context_budget.fit(load(act, task, include or Include(), max_tokens), max_tokens)


def load(act: Act, task: Task, chosen: Include, budget: int) -> Mapped:
    """Give the whole context, but for what no answer within the budget could hold."""
    entries, characters = context_budget.most_entries(budget), context_budget.most_characters(budget)
    sections: Mapped = {
        "workflow": _workflow(act, act.records.workflow(task.workflow_id), chosen),
        "current_task": _current_task(act, task, chosen, entries, characters),
        "prior_tasks": [],
    }
    if chosen.prior_task_outcomes:
        length = characters if chosen.prior_task_full else OUTCOME
        before, total = act.records.results_before(
            task, limit=entries, characters=length + 1, has_detail=chosen.prior_task_full
        )
        sections["prior_tasks"] = [_prior(other, length, is_full=chosen.prior_task_full) for other in before]
        sections |= omitted("prior_tasks", total - len(before))
    siblings = act.records.results_beside(task, SUMMARY) if chosen.sibling_status else []
    if siblings:
        newest = act.records.newest_summaries(task, SUMMARY)
        sections["sibling_tasks"] = [_sibling(other, newest.get(other.id)) for other in siblings]
    if chosen.dependency_outcomes:
        needed, length = act.records.dependency_results(task.id, characters)
        sections["dependency_outcomes"] = [
            {"task_id": other.id, "task_name": other.name, "outcome": shortened(other.outcome or "", length)}
            for other in needed
        ]
    return sections


def _workflow(act: Act, workflow: Workflow, chosen: Include) -> Mapped:
    section: Mapped = {"id": workflow.id, "name": workflow.name, "source_type": workflow.source_type}
    if chosen.workflow_summary:
        section["source_summary"] = act.records.source_content(workflow.id)
    if chosen.workflow_plan:
        section["plan_summary"] = workflow.plan_summary or ""
    return {**section, "status": workflow.status, "max_parallel_tasks": workflow.max_parallel_tasks}


def _current_task(act: Act, task: Task, chosen: Include, entries: int, characters: int) -> Mapped:
    checkpoints, total = _checkpoints(act, task, chosen, entries, characters)
    return {
        "id": task.id,
        "name": task.name,
        "description": task.description or "",
        "plan": task.plan,
        "context": task.context,
        "checkpoints": checkpoints,
        **omitted("checkpoints", total - len(checkpoints)),
        "status": task.shown_status,
    }


def _checkpoints(act: Act, task: Task, chosen: Include, entries: int, characters: int) -> tuple[list[Mapped], int]:
    """Give the newest checkpoints, older ones without what they say in detail, and how many there are in all."""
    wanted = entries if chosen.all_checkpoints else min(chosen.recent_checkpoints, entries)
    detailed = _detailed(act, task, wanted, characters)
    before = detailed[0].sequence if detailed else MAX_NUMBER
    older = act.records.checkpoint_lines(task.id, before, entries - len(detailed))
    total = act.records.checkpoint_count(task.id)
    listed = [context_budget.without_detail(checkpoint.reply()) for checkpoint in older]
    return [*listed, *(_shown(checkpoint, chosen) for checkpoint in detailed)], total


def _detailed(act: Act, task: Task, wanted: int, characters: int) -> list[Checkpoint]:
    """Read the newest checkpoints a few at a time, until there are more characters than the budget could hold."""
    detailed: list[Checkpoint] = []
    length = 0
    while len(detailed) < wanted and length <= characters:
        before = detailed[0].sequence if detailed else MAX_NUMBER
        page, _ = act.records.last_checkpoints(task.id, min(PAGE, wanted - len(detailed)), before)
        if not page:
            break
        detailed = page + detailed
        length += sum(len(compact(checkpoint.detail)) for checkpoint in page)
    return detailed


def _shown(checkpoint: Checkpoint, chosen: Include) -> Mapped:
    files: list[Any] | None = checkpoint.files_changed
    if files and len(files) > LISTED_FILES and not chosen.all_checkpoints:
        files = [*files[:LISTED_FILES], f"and {len(files) - LISTED_FILES} more"]
    return {**checkpoint.reply(), "files_changed": files}


def _prior(result: Any, length: int, *, is_full: bool) -> Mapped:
    outcome = result.outcome or ""
    prior: Mapped = {"id": result.id, "name": result.name}
    prior["outcome"] = shortened(outcome, length) if is_full else outcome[:length]
    if is_full:
        prior["outcome_detail"] = result.outcome_detail
    return {**prior, "status": shown_status(result.status, result.open_dependencies)}


def _sibling(result: Any, newest_summary: str | None) -> Mapped:
    summary = result.outcome or newest_summary
    status = shown_status(result.status, result.open_dependencies)
    return {"id": result.id, "name": result.name, "status": status, **({"brief_summary": summary} if summary else {})}
