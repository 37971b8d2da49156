"""Tasks: what they were like at their beginning, and what has come of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from deepwork_sql import Transaction, new_id
from deepwork_tracking.areas import files_outside
from deepwork_tracking.arguments import Outcome, TaskMetadata
from deepwork_tracking.changes import FileChanges
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.rows import find, seconds_between, task_row
from deepwork_tracking.snapshots import Snapshot
from deepwork_tracking.tables import phases, snapshots, tasks, workflows
from deepwork_tracking.words import IN_PROGRESS, iso, stored
from deepwork_tracking.workflows import emit, emit_workflow, lock, reopen

# As many files of each kind are in the reply; more would not fit into an agent's context. All of them are stored.
MAX_SHOWN_FILES = 1_000


def check_start(
    transaction: Transaction,
    *,
    workflow_id: str,
    phase_id: str,
    caller_type: str,
    agent_name: str | None,
    parent_task_id: str | None,
) -> tuple[Row[Any], Row[Any]]:
    """Check whether a task may begin, and give its workflow and phase.

    Raises:
        NotFound: An id does not exist.
        InvalidCall: The phase is of another workflow or has ended, the parent is of another workflow or does not run,
            or a subagent has no name.
    """
    workflow = find(transaction, workflows, workflow_id)
    phase = find(transaction, phases, phase_id)
    if phase.workflow_id != workflow_id:
        raise InvalidCall(f"phase {phase_id!r} belongs to workflow {phase.workflow_id!r}, not to {workflow_id!r}")
    if phase.status != IN_PROGRESS:
        raise InvalidCall(
            f"phase {phase_id!r} is {phase.status}: cannot add tasks", hint="Begin another phase with start_phase."
        )
    if parent_task_id is not None:
        _check_parent(find(transaction, tasks, parent_task_id), workflow_id)
    if caller_type == "subagent" and not agent_name:
        raise InvalidCall("agent_name is required when caller_type is 'subagent'", hint="Call again with agent_name.")
    return workflow, phase


def _check_parent(parent: Row[Any], workflow_id: str) -> None:
    if parent.workflow_id != workflow_id:
        raise InvalidCall(f"the parent task {parent.id!r} belongs to workflow {parent.workflow_id!r}")
    if parent.status != IN_PROGRESS:
        raise InvalidCall(f"the parent task {parent.id!r} is {parent.status}, not {IN_PROGRESS}")


def start_task(
    transaction: Transaction,
    snapshot: Snapshot,
    *,
    name: str,
    goal: str,
    areas: Sequence[str],
    principal: str,
    **who: Any,
) -> dict[str, Any]:
    """Begin a task; `who` are the arguments of `check_start`.

    Raises:
        NotFound: As `check_start`.
        InvalidCall: As `check_start`.
    """
    lock(transaction, who["workflow_id"])
    workflow, phase = check_start(transaction, **who)
    warnings = [*reopen(transaction, workflow), *snapshot.warnings]
    values = {
        **who,
        "id": new_id("tt"),
        "caller_type": stored(who["caller_type"]),
        "name": name,
        "goal": goal,
        "areas": list(areas),
        "status": IN_PROGRESS,
        "snapshot_id": snapshot.id,
        "snapshot_type": snapshot.type,
        "started_at": transaction.now,
        "manual_review_needed": False,
    }
    transaction.execute(insert(tasks).values(values))
    # Names of files may be no UTF-8; in ASCII any of them can be stored.
    content = json.dumps(snapshot.model_dump(), separators=(",", ":"))
    transaction.execute(insert(snapshots).values(task_id=values["id"], content=content))
    if workflow.status != IN_PROGRESS:
        emit_workflow(transaction, "workflow:updated", workflow.id, principal)
    _emit_task(transaction, "task:created", values["id"], principal)
    result = {
        "task_id": values["id"],
        "workflow_id": workflow.id,
        "phase_id": phase.id,
        "phase_number": phase.number,
        "phase_name": phase.name,
        "caller_type": who["caller_type"],
        "snapshot_id": snapshot.id,
        "snapshot_type": snapshot.type,
        "started_at": iso(transaction.now),
    }
    agent = {"agent_name": who["agent_name"]} if who["agent_name"] else {}
    return result | agent | ({"warnings": warnings} if warnings else {})


def running_task(transaction: Transaction, task_id: str) -> Row[Any]:
    """Give a task that may be completed.

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


def stored_snapshot(transaction: Transaction, task_id: str) -> Snapshot:
    """Give the snapshot of a task that may be completed.

    Raises:
        NotFound: As `running_task`.
        InvalidCall: As `running_task`.
    """
    running_task(transaction, task_id)
    content = transaction.execute(select(snapshots.c.content).where(snapshots.c.task_id == task_id)).scalar_one()
    return Snapshot.model_validate(json.loads(content))


def complete_task(
    transaction: Transaction,
    task_id: str,
    changes: FileChanges,
    *,
    status: str,
    outcome: Outcome,
    metadata: TaskMetadata,
    principal: str,
) -> dict[str, Any]:
    """End a task; of several callers who try this at once only the first does it.

    Raises:
        NotFound: As `running_task`.
        InvalidCall: As `running_task`.
    """
    lock(transaction, find(transaction, tasks, task_id).workflow_id)
    task = running_task(transaction, task_id)
    files = {"added": list(changes.added), "modified": list(changes.modified), "deleted": list(changes.deleted)}
    verification = verify(changes, task.areas)
    values = {
        "status": stored(status),
        "completed_at": transaction.now,
        **outcome.model_dump(),
        "manual_review_needed": bool(outcome.manual_review_needed),
        "packages_added": metadata.packages_added,
        "tests_status": stored(metadata.tests_status) if metadata.tests_status else None,
        "files_changed": files,
        "verification": verification,
    }
    transaction.execute(update(tasks).where(tasks.c.id == task_id).values(values))
    transaction.execute(delete(snapshots).where(snapshots.c.task_id == task_id))
    _emit_task(transaction, "task:updated", task_id, principal)
    return {
        "task_id": task_id,
        "workflow_id": task.workflow_id,
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


def _emit_task(transaction: Transaction, event: str, task_id: str, principal: str) -> None:
    task = find(transaction, tasks, task_id)
    emit(transaction, event, task.workflow_id, task_row(task), principal)
