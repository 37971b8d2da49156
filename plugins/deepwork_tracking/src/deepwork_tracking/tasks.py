"""Tasks: what they were like at their beginning, and what has come of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row, delete, insert, select, update

from deepwork_sql import Transaction, new_id
from deepwork_tracking.areas import files_outside
from deepwork_tracking.arguments import Outcome, TaskMetadata
from deepwork_tracking.changes import FileChanges
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.rows import find, seconds_between, task_row
from deepwork_tracking.snapshots import TreeSnapshot
from deepwork_tracking.tables import phases, snapshots, tasks, workflows
from deepwork_tracking.words import IN_PROGRESS, iso, stored
from deepwork_tracking.workflows import emit, emit_workflow, lock, reopen

# As many files of each kind are in the reply; more would not fit into an agent's context. All of them are stored.
MAX_SHOWN_FILES = 1_000


@dataclass(frozen=True)
class NewTask:
    """A task that is to begin."""

    name: str
    goal: str
    areas: Sequence[str]
    workflow_id: str
    phase_id: str
    caller_type: str
    agent_name: str | None
    parent_task_id: str | None


@dataclass(frozen=True)
class EndOfTask:
    """How a task ends."""

    task_id: str
    status: str
    outcome: Outcome
    metadata: TaskMetadata


def check_start(transaction: Transaction, new: NewTask) -> tuple[Row[Any], Row[Any]]:
    """Check whether a task may begin, and return its workflow and phase.

    Raises:
        NotFound: An id does not exist.
        InvalidCall: The phase is of another workflow or has ended, the parent is of another workflow or does not run,
            or a subagent has no name.
    """
    workflow = find(transaction, workflows, new.workflow_id)
    phase = find(transaction, phases, new.phase_id)
    if phase.workflow_id != new.workflow_id:
        raise InvalidCall(
            f"phase {new.phase_id!r} belongs to workflow {phase.workflow_id!r}, not to {new.workflow_id!r}"
        )
    if phase.status != IN_PROGRESS:
        raise InvalidCall(
            f"phase {new.phase_id!r} is {phase.status}: cannot add tasks", hint="Begin another phase with start_phase."
        )
    if new.parent_task_id is not None:
        _check_parent(find(transaction, tasks, new.parent_task_id), new.workflow_id)
    if new.caller_type == "subagent" and not new.agent_name:
        raise InvalidCall("agent_name is required when caller_type is 'subagent'", hint="Call again with agent_name.")
    return workflow, phase


def _check_parent(parent: Row[Any], workflow_id: str) -> None:
    if parent.workflow_id != workflow_id:
        raise InvalidCall(f"the parent task {parent.id!r} belongs to workflow {parent.workflow_id!r}")
    if parent.status != IN_PROGRESS:
        raise InvalidCall(f"the parent task {parent.id!r} is {parent.status}, not {IN_PROGRESS}")


def begin(transaction: Transaction, new: NewTask, snapshot: TreeSnapshot, principal: str) -> dict[str, Any]:
    """Begin a task.

    Raises:
        NotFound: As `check_start`.
        InvalidCall: As `check_start`.
    """
    lock(transaction, new.workflow_id)
    workflow, phase = check_start(transaction, new)
    warnings = [*reopen(transaction, workflow), *snapshot.warnings]
    taken = {"snapshot_id": snapshot.id, "snapshot_type": snapshot.type}
    values = {
        **asdict(new),
        "id": new_id("tt"),
        "caller_type": stored(new.caller_type),
        "areas": list(new.areas),
        "status": IN_PROGRESS,
        **taken,
        "started_at": transaction.now,
        "manual_review_needed": False,
    }
    task = transaction.execute(insert(tasks).values(values).returning(tasks)).one()
    # Names of files may be no UTF-8; in ASCII any of them can be stored.
    content = json.dumps(snapshot.model_dump(), separators=(",", ":"))
    transaction.execute(insert(snapshots).values(task_id=task.id, content=content))
    if workflow.status != IN_PROGRESS:
        emit_workflow(transaction, "workflow:updated", workflow.id, principal)
    emit(transaction, "task:created", task.workflow_id, task_row(task), principal)
    result = {
        "task_id": task.id,
        "workflow_id": workflow.id,
        "phase_id": phase.id,
        "phase_number": phase.number,
        "phase_name": phase.name,
        "caller_type": new.caller_type,
        **taken,
        "started_at": iso(transaction.now),
    }
    agent = {"agent_name": new.agent_name} if new.agent_name else {}
    return result | agent | ({"warnings": warnings} if warnings else {})


def running_task(transaction: Transaction, task_id: str) -> Row[Any]:
    """Return a task that may be completed.

    Raises:
        NotFound: There is no such task.
        InvalidCall: It has ended, or a task below it still runs.
    """
    task = find(transaction, tasks, task_id)
    if task.status != IN_PROGRESS:
        raise InvalidCall(
            f"task {task_id!r} is {task.status}, not {IN_PROGRESS}",
            hint="It was completed before; go on with the next.",
        )
    below = select(tasks.c.id, tasks.c.name).where(tasks.c.parent_task_id == task_id, tasks.c.status == IN_PROGRESS)
    if child := transaction.execute(below.order_by(tasks.c.position)).first():
        raise InvalidCall(
            f"task {task_id!r} cannot be completed while its subtask {child.id!r} ({child.name}) is in progress",
            hint=f"Complete {child.id!r} first.",
        )
    return task


class Beginning(NamedTuple):
    """The workflow of a task, and what the files were like when it began."""

    workflow_id: str
    snapshot: TreeSnapshot


def beginning(transaction: Transaction, task_id: str) -> Beginning:
    """Return how a task began that may be completed.

    Raises:
        NotFound: As `running_task`.
        InvalidCall: As `running_task`.
    """
    task = running_task(transaction, task_id)
    content = transaction.execute(select(snapshots.c.content).where(snapshots.c.task_id == task_id)).scalar_one()
    return Beginning(task.workflow_id, TreeSnapshot.model_validate(json.loads(content)))


def finish(
    transaction: Transaction, workflow_id: str, end: EndOfTask, changes: FileChanges, principal: str
) -> dict[str, Any]:
    """End a task of a workflow; of several callers who try this at once only the first does it.

    Raises:
        NotFound: As `running_task`.
        InvalidCall: As `running_task`.
    """
    lock(transaction, workflow_id)
    task = running_task(transaction, end.task_id)
    files = {"added": list(changes.added), "modified": list(changes.modified), "deleted": list(changes.deleted)}
    verification = verify(changes, task.areas)
    values = {
        "status": stored(end.status),
        "completed_at": transaction.now,
        **end.outcome.model_dump(),
        "manual_review_needed": bool(end.outcome.manual_review_needed),
        "packages_added": end.metadata.packages_added,
        "tests_status": stored(end.metadata.tests_status) if end.metadata.tests_status else None,
        "files_changed": files,
        "verification": verification,
    }
    ended = transaction.execute(update(tasks).where(tasks.c.id == task.id).values(values).returning(tasks)).one()
    transaction.execute(delete(snapshots).where(snapshots.c.task_id == task.id))
    emit(transaction, "task:updated", workflow_id, task_row(ended), principal)
    return {
        "task_id": task.id,
        "workflow_id": workflow_id,
        "duration_seconds": seconds_between(task.started_at, transaction.now),
        "files_changed": {word: paths[:MAX_SHOWN_FILES] for word, paths in files.items()},
        "verification": _shortened(verification, files),
        "phase_status": find(transaction, phases, task.phase_id).status.lower(),
    }


def verify(changes: FileChanges, areas: Sequence[str]) -> dict[str, Any]:
    """Compare the files that a task has changed with the areas that it has named."""
    outside = files_outside(changes.paths, areas)
    warnings = [f"{len(outside)} file(s) changed outside of the areas {', '.join(areas)}"] if outside else []
    return {
        "scope_match": not outside,
        "unexpected_files": outside,
        "changed_before_start": list(changes.dirty_before),
        "warnings": [*warnings, *changes.warnings],
    }


def _shortened(verification: dict[str, Any], files: dict[str, list[str]]) -> dict[str, Any]:
    total = sum(map(len, files.values()))
    lists = ("unexpected_files", "changed_before_start")
    shortened = verification | {name: verification[name][:MAX_SHOWN_FILES] for name in lists}
    if max(map(len, files.values())) > MAX_SHOWN_FILES:
        text = f"{total:,} files changed; {MAX_SHOWN_FILES:,} of each kind are shown, `deepwork track show` has all"
        shortened["warnings"] = [*shortened["warnings"], text]
    return shortened
