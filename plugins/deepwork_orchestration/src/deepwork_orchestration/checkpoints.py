"""Checkpoints: what was done, decided or went wrong on the way of a task. `tasks` has the tool that adds one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from deepwork_orchestration.agents import note_call_of_holder
from deepwork_orchestration.arguments import MAX_NUMBER, Count, Id, Limit, StoredCheckpointType
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Checkpoint, Mapped, Task
from deepwork_orchestration.sql import Filters, columns, listing, sql
from deepwork_orchestration.transaction import PlanTransaction

_OF_TASK = "FROM orchestration_checkpoints WHERE task_id = :task_id"
_BEFORE = f"{_OF_TASK} AND sequence < :before ORDER BY sequence DESC LIMIT :limit"
_LAST_SEQUENCE = sql(f"SELECT max(sequence) AS last {_OF_TASK}")
_COUNT = sql(f"SELECT count(*) AS total {_OF_TASK}")
_LAST = listing(Checkpoint, _BEFORE)
# Details and lists of files may be long.
_LAST_WITHOUT_DETAIL = sql(f"SELECT {columns(Checkpoint, absent=('detail', 'files_changed'))} {_BEFORE}")


def checkpoint_list(
    transaction: PlanTransaction,
    /,
    task_id: Id,
    type: list[StoredCheckpointType] | None = None,  # noqa: A002
    since_sequence: Count = 0,
    limit: Limit | None = None,
) -> Mapped:
    """List checkpoints of a task, oldest first."""
    note_call_of_holder(transaction, transaction.get(Task, task_id))
    checkpoints, left_out = listed(transaction, task_id, type, since_sequence, limit)
    return {"checkpoints": [checkpoint.reply() for checkpoint in checkpoints], **omitted("checkpoints", left_out)}


def listed(
    transaction: PlanTransaction, task_id: str, kinds: Collection[str] | None, since: int = 0, limit: int | None = None
) -> tuple[list[Checkpoint], int]:
    """Return the oldest checkpoints of a task within the limit, in their order, and how many are left out."""
    filters = Filters(task_id=task_id).add("sequence > :since", since=since).one_of("checkpoint_type", kinds)
    rest = f"FROM orchestration_checkpoints {filters.where()} ORDER BY sequence LIMIT :limit"
    return transaction.some_of(Checkpoint, listing(Checkpoint, rest), limit=limit, **filters.arguments)


def add(transaction: PlanTransaction, task: Task, kind: str, summary: str, **more: Any) -> Checkpoint:
    """Store the next checkpoint of a task, perhaps with its `detail` and `files_changed`."""
    sequence = (transaction.row(_LAST_SEQUENCE, task_id=task.id).last or 0) + 1
    values = {"task_id": task.id, "sequence": sequence, "checkpoint_type": kind, "summary": summary}
    checkpoint = transaction.add(Checkpoint, **values, **more)
    data = {"task_id": task.id, "sequence": sequence, "type": kind, "summary": summary[:500]}
    transaction.emit("checkpoint:added", task.workflow_id, {"id": checkpoint.id, **data})
    return checkpoint


def last(
    transaction: PlanTransaction, task_id: str, limit: int | None, before: int = MAX_NUMBER
) -> tuple[list[Checkpoint], int]:
    """Return the newest checkpoints before a sequence number, in their order, and how many are left out."""
    newest, left_out = transaction.some_of(Checkpoint, _LAST, task_id=task_id, before=before, limit=limit)
    return newest[::-1], left_out


def last_without_detail(transaction: PlanTransaction, task_id: str, before: int, limit: int) -> list[Checkpoint]:
    """Return the newest checkpoints before a sequence number, without their details and files."""
    newest = transaction.all(Checkpoint, _LAST_WITHOUT_DETAIL, task_id=task_id, before=before, limit=limit)
    return newest[::-1]


def count(transaction: PlanTransaction, task_id: str) -> int:
    """Count the checkpoints of a task."""
    return transaction.count(_COUNT, task_id=task_id)
