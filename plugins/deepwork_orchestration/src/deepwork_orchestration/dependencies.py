"""Dependencies: which tasks wait for which, and the results of the finished ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from deepwork_orchestration import limits
from deepwork_orchestration.agents import note_call_of_holder
from deepwork_orchestration.arguments import Id
from deepwork_orchestration.graph import grouped
from deepwork_orchestration.limits import shortened
from deepwork_orchestration.models import Mapped, Task, shown_status
from deepwork_orchestration.sql import CUT, one_of, sql
from deepwork_orchestration.states import DONE
from deepwork_orchestration.transaction import PlanTransaction

TABLE = "orchestration_dependencies"

_NEEDED = f"(SELECT depends_on_id FROM {TABLE} WHERE task_id = :task_id AND type = 'blocks')"
_IN_ORDER = "ORDER BY sequence, name, number"
_OUTCOME = CUT.format("outcome")
_OF_DONE = f"FROM orchestration_tasks WHERE id IN {_NEEDED} AND {one_of('status', DONE)}"
_LINES = sql(
    "SELECT id, name, status, sequence, parallel_group, open_dependencies, assigned_agent_id "
    f"FROM orchestration_tasks WHERE id IN {_NEEDED} {_IN_ORDER}"
)
_RESULTS = sql(f"SELECT id, name, status, open_dependencies, {_OUTCOME} AS outcome {_OF_DONE} {_IN_ORDER}")
_RESULT_SIZES = sql(f"SELECT count(*) AS total, coalesce(sum(length({_OUTCOME})), 0) AS size {_OF_DONE}")
_NAMES = (
    f"SELECT d.task_id, needed.name FROM {TABLE} AS d JOIN orchestration_tasks AS task ON task.id = d.task_id "
    "JOIN orchestration_tasks AS needed ON needed.id = d.depends_on_id "
    f"WHERE task.workflow_id = :workflow_id AND d.type = 'blocks' AND {{}} {one_of('needed.status', DONE)} "
    "ORDER BY needed.sequence, needed.name"
)
_DONE_NAMES, _OPEN_NAMES = sql(_NAMES.format("")), sql(_NAMES.format("NOT"))
_EDGES = sql(
    f"SELECT d.task_id, d.depends_on_id FROM {TABLE} AS d JOIN orchestration_tasks AS task ON task.id = d.task_id "
    "WHERE task.workflow_id = :workflow_id AND d.type = 'blocks' ORDER BY task.sequence, task.number"
)
_RELEASE = sql(
    "UPDATE orchestration_tasks SET open_dependencies = open_dependencies - 1, updated_at = :now "
    f"WHERE id IN (SELECT task_id FROM {TABLE} WHERE depends_on_id = :task_id AND type = 'blocks')"
)


def task_check_dependencies(transaction: PlanTransaction, /, task_id: Id) -> Mapped:
    """Show what a task waits for: which of its dependencies are completed, and which are not."""
    note_call_of_holder(transaction, transaction.get(Task, task_id))
    pending = [
        {"id": task.id, "name": task.name, "status": shown_status(task.status, task.open_dependencies)}
        for task in needed_by(transaction, task_id)
        if task.status not in DONE
    ]
    tasks, length = results(transaction, task_id, limits.MAX_ANSWER)
    completed = [
        {"id": task.id, "name": task.name, "outcome": task.outcome and shortened(task.outcome, length)}
        for task in tasks
    ]
    return {"satisfied": not pending, "pending": pending, "completed": completed}


def needed_by(transaction: PlanTransaction, task_id: str) -> Sequence[Any]:
    """Return of each task that a task waits for, done or not, what overviews need."""
    return transaction.rows(_LINES, task_id=task_id)


def results(transaction: PlanTransaction, task_id: str, length: int) -> tuple[Sequence[Any], int]:
    """Return the results of the tasks that a task has waited for, and the length to which they may have been cut.

    Outcomes have a character more than the length if they are longer. It is less than what was asked for if an
    answer has no room for all of them.
    """
    sizes = transaction.row(_RESULT_SIZES, task_id=task_id, characters=length)
    if sizes.size > limits.MAX_ANSWER:
        length = limits.MAX_ANSWER // sizes.total
    return transaction.rows(_RESULTS, task_id=task_id, characters=length + 1), length


def done_names(transaction: PlanTransaction, workflow_id: str) -> dict[str, list[str]]:
    """Return, for each task of a workflow, the names of those it has waited for."""
    return grouped(transaction.rows(_DONE_NAMES, workflow_id=workflow_id))


def open_names(transaction: PlanTransaction, workflow_id: str) -> dict[str, list[str]]:
    """Return, for each task of a workflow, the names of those it still waits for."""
    return grouped(transaction.rows(_OPEN_NAMES, workflow_id=workflow_id))


def edges(transaction: PlanTransaction, workflow_id: str) -> list[tuple[str, str]]:
    """Return each task of a workflow with each task that it waits for."""
    return [(task_id, needed) for task_id, needed in transaction.rows(_EDGES, workflow_id=workflow_id)]


def add(transaction: PlanTransaction, pairs: Iterable[tuple[str, str]]) -> None:
    """Store that tasks wait for others."""
    rows = [{"task_id": task, "depends_on_id": needed, "type": "blocks"} for task, needed in pairs]
    transaction.insert_all(TABLE, rows)


def release_dependents(transaction: PlanTransaction, task_id: str) -> None:
    """Count a finished task as no longer open for its dependents."""
    transaction.run(_RELEASE, task_id=task_id, now=transaction.now)
