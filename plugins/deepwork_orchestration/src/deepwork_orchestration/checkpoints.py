"""The tools about checkpoints."""

from __future__ import annotations

from deepwork_orchestration import claims
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import (
    Caller,
    CheckpointType,
    Count,
    Fence,
    Id,
    Limit,
    Object,
    StoredCheckpointType,
    Text,
    Texts,
)
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Checkpoint, Mapped, Task


def checkpoint_add(
    act: Act,
    task_id: Id,
    type: CheckpointType,  # noqa: A002
    summary: Text,
    detail: Object | None = None,
    files_changed: Texts | None = None,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Record what was done, decided or went wrong, for whoever goes on with the task."""
    task = act.records.task(task_id)
    claims.guard(act, task, "checkpoint_add", fence=fence, agent_id=agent_id)
    checkpoint = add(act, task, type, summary, detail=detail, files_changed=files_changed)
    return {"id": checkpoint.id, "sequence": checkpoint.sequence}


def checkpoint_list(
    act: Act,
    task_id: Id,
    type: list[StoredCheckpointType] | None = None,  # noqa: A002
    since_sequence: Count = 0,
    limit: Limit | None = None,
) -> Mapped:
    """List checkpoints of a task, oldest first."""
    task = act.records.task(task_id)
    claims.notice_binding(act, task)
    checkpoints, left_out = act.records.checkpoints(task_id, kinds=type, since=since_sequence, limit=limit)
    listed = [checkpoint.reply() for checkpoint in checkpoints]
    return {"checkpoints": listed, **omitted("checkpoints", left_out)}


def add(
    act: Act,
    task: Task,
    kind: str,
    summary: str,
    *,
    detail: Mapped | None = None,
    files_changed: list[str] | None = None,
) -> Checkpoint:
    """Store a checkpoint."""
    checkpoint = act.records.add_checkpoint(task.id, kind, summary, detail=detail, files_changed=files_changed)
    data = {"task_id": task.id, "sequence": checkpoint.sequence, "type": kind, "summary": summary[:500]}
    act.emit("checkpoint:added", task.workflow_id, {"id": checkpoint.id, **data})
    return checkpoint
