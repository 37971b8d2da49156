"""The context of a task: all that an agent needs to go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork_orchestration import checkpoints, context_budget, dependencies
from deepwork_orchestration.agents import note_call_of_holder
from deepwork_orchestration.arguments import MAX_NUMBER, Id, Include, Ordinal, compact
from deepwork_orchestration.limits import omitted, shortened
from deepwork_orchestration.models import Checkpoint, Mapped, Task, Workflow, shown_status
from deepwork_orchestration.sql import CUT, listing, sql
from deepwork_orchestration.transaction import PlanTransaction

SUMMARY = 200
OUTCOME = 300
LISTED_FILES = 10
# So many checkpoints with all they say are read at once.
PAGE = 5

_SOURCE = sql("SELECT source_content FROM orchestration_workflows WHERE id = :id")
_BEFORE = "FROM orchestration_tasks WHERE workflow_id = :workflow_id AND sequence < :sequence"
_LAST_FIRST = f"{_BEFORE} ORDER BY sequence DESC, name DESC, number DESC LIMIT :limit"
_COUNT_BEFORE = sql(f"SELECT count(*) AS total {_BEFORE}")
# Outcomes may be long texts: what is longer than any answer is not read.
_RESULT = "id", "name", "status", "open_dependencies", f"{CUT.format('outcome')} AS outcome"
_RESULTS_BEFORE = listing(Task, _LAST_FIRST, *_RESULT)
_DETAILED_RESULTS_BEFORE = listing(Task, _LAST_FIRST, *_RESULT, "outcome_detail")
_RESULTS_BESIDE = sql(
    f"SELECT {', '.join(_RESULT)} FROM orchestration_tasks WHERE workflow_id = :workflow_id "
    "AND parallel_group = :parallel_group AND id <> :id ORDER BY sequence, name, number"
)
_NEWEST_SUMMARIES = sql(
    f"SELECT c.task_id, {CUT.format('c.summary')} AS summary FROM orchestration_checkpoints AS c "
    "JOIN (SELECT task_id, max(sequence) AS sequence FROM orchestration_checkpoints WHERE task_id IN "
    "(SELECT id FROM orchestration_tasks WHERE workflow_id = :workflow_id AND parallel_group = :parallel_group) "
    "GROUP BY task_id) AS newest ON newest.task_id = c.task_id AND newest.sequence = c.sequence"
)


def task_load_context(
    transaction: PlanTransaction, /, task_id: Id, include: Include | None = None, max_tokens: Ordinal = 8000
) -> Mapped:
    """Load all that is needed to go on with a task, within a budget of tokens. Call it after losing your context."""
    task = transaction.get(Task, task_id)
    note_call_of_holder(transaction, task)
    return context_budget.fit(load(transaction, task, include or Include(), max_tokens), max_tokens)


def load(transaction: PlanTransaction, task: Task, chosen: Include, budget: int) -> Mapped:
    """Return the whole context, but for what no answer within the budget could hold."""
    entries, characters = context_budget.most_entries(budget), context_budget.most_characters(budget)
    sections: Mapped = {
        "workflow": _workflow(transaction, transaction.get(Workflow, task.workflow_id), chosen),
        "current_task": _current_task(transaction, task, chosen, budget),
        "prior_tasks": [],
    }
    if chosen.prior_task_outcomes:
        length = characters if chosen.prior_task_full else OUTCOME
        before, total = _results_before(transaction, task, entries, length + 1, has_detail=chosen.prior_task_full)
        sections["prior_tasks"] = [_prior(result, length, is_full=chosen.prior_task_full) for result in before]
        sections |= omitted("prior_tasks", total - len(before))
    if chosen.sibling_status and (siblings := _siblings(transaction, task)):
        sections["sibling_tasks"] = siblings
    if chosen.dependency_outcomes:
        needed, length = dependencies.results(transaction, task.id, characters)
        sections["dependency_outcomes"] = [
            {"task_id": result.id, "task_name": result.name, "outcome": shortened(result.outcome or "", length)}
            for result in needed
        ]
    return sections


def _workflow(transaction: PlanTransaction, workflow: Workflow, chosen: Include) -> Mapped:
    section: Mapped = {"id": workflow.id, "name": workflow.name, "source_type": workflow.source_type}
    if chosen.workflow_summary:
        section["source_summary"] = transaction.row(_SOURCE, id=workflow.id).source_content
    if chosen.workflow_plan:
        section["plan_summary"] = workflow.plan_summary or ""
    return {**section, "status": workflow.status, "max_parallel_tasks": workflow.max_parallel_tasks}


def _current_task(transaction: PlanTransaction, task: Task, chosen: Include, budget: int) -> Mapped:
    listed, total = _checkpoints(transaction, task, chosen, budget)
    return {
        "id": task.id,
        "name": task.name,
        "description": task.description or "",
        "plan": task.plan,
        "context": task.context,
        "checkpoints": listed,
        **omitted("checkpoints", total - len(listed)),
        "status": task.shown_status,
    }


def _checkpoints(transaction: PlanTransaction, task: Task, chosen: Include, budget: int) -> tuple[list[Mapped], int]:
    """Return the newest checkpoints, older ones without their details, and how many there are in all."""
    entries = context_budget.most_entries(budget)
    count = entries if chosen.all_checkpoints else min(chosen.recent_checkpoints, entries)
    detailed = _detailed(transaction, task, count, context_budget.most_characters(budget))
    before = detailed[0].sequence if detailed else MAX_NUMBER
    older = checkpoints.last_without_detail(transaction, task.id, before, entries - len(detailed))
    listed = [context_budget.without_detail(checkpoint.reply()) for checkpoint in older]
    texts = [_shown(checkpoint, chosen) for checkpoint in detailed]
    return [*listed, *texts], checkpoints.count(transaction, task.id)


def _detailed(transaction: PlanTransaction, task: Task, count: int, characters: int) -> list[Checkpoint]:
    """Read the newest checkpoints a few at a time, until there are more characters than the budget could hold."""
    detailed: list[Checkpoint] = []
    length = 0
    while len(detailed) < count and length <= characters:
        before = detailed[0].sequence if detailed else MAX_NUMBER
        page, _ = checkpoints.last(transaction, task.id, min(PAGE, count - len(detailed)), before)
        if not page:
            break
        detailed = page + detailed
        length += sum(len(compact(checkpoint.detail)) for checkpoint in page)
    return detailed


def _results_before(
    transaction: PlanTransaction, task: Task, limit: int, characters: int, *, has_detail: bool
) -> tuple[Sequence[Any], int]:
    """Return the results of the last of the tasks of lower sequence, and how many such tasks there are."""
    before = {"workflow_id": task.workflow_id, "sequence": task.sequence}
    statements = _DETAILED_RESULTS_BEFORE if has_detail else _RESULTS_BEFORE
    results, left_out = transaction.some(statements, **before, limit=limit, characters=characters)
    count = len(results) + left_out
    return results[::-1], count if count < limit else transaction.count(_COUNT_BEFORE, **before)


def _siblings(transaction: PlanTransaction, task: Task) -> list[Mapped]:
    """Return the other tasks of the same parallel group."""
    if task.parallel_group is None:
        return []
    group = {"workflow_id": task.workflow_id, "parallel_group": task.parallel_group, "characters": SUMMARY}
    results = transaction.rows(_RESULTS_BESIDE, **group, id=task.id)
    newest = dict(transaction.rows(_NEWEST_SUMMARIES, **group)) if results else {}
    return [_sibling(result, newest.get(result.id)) for result in results]


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
