"""The beginning and the end of a task, where git and the database meet. git runs outside of transactions."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from deepwork.api import Git, GitError, PathRefused, PluginContext
from deepwork_tracking import tasks
from deepwork_tracking.arguments import Outcome, TaskMetadata
from deepwork_tracking.changes import FileChanges, changes_since
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.places import find_folder
from deepwork_tracking.records import Records
from deepwork_tracking.snapshots import Snapshot, take_snapshot


async def start_task(
    context: PluginContext,
    records: Records,
    *,
    path: str | None,
    name: str,
    goal: str,
    areas: list[str],
    principal: str,
    **who: Any,
) -> dict[str, Any]:
    """Take a snapshot, and begin a task; see `tasks.start_task`.

    Raises:
        TrackingError: The task cannot begin.
    """
    records.check({"name": name, "goal": goal, "areas": areas, **who})
    # The snapshot may take a while; a call that cannot succeed is refused before.
    await records.read(lambda transaction: tasks.check_start(transaction, **who))
    try:
        folder = await find_folder(context, path)
    except PathRefused as error:
        hint = "Leave it out to work in the project."
        raise InvalidCall(f"path: {path!r} {error.message}", hint=hint) from error
    machine = (await records.database()).machine
    snapshot = await take_snapshot(folder, machine, partial(context.git, Git))
    return await records.write(
        lambda transaction: tasks.start_task(
            transaction, snapshot, name=name, goal=goal, areas=areas, principal=principal, **who
        )
    )


async def complete_task(
    context: PluginContext,
    records: Records,
    task_id: str,
    *,
    status: str,
    outcome: Outcome,
    metadata: TaskMetadata,
    principal: str,
) -> dict[str, Any]:
    """Compare the files with the snapshot of a task, and end the task; see `tasks.complete_task`.

    Raises:
        TrackingError: The task cannot end.
    """
    records.check({"task_id": task_id, "outcome": outcome.model_dump(), "metadata": metadata.model_dump()})
    snapshot = await records.read(lambda transaction: tasks.stored_snapshot(transaction, task_id))
    changes = await _changes(context, (await records.database()).machine, snapshot)
    return await records.write(
        lambda transaction: tasks.complete_task(
            transaction, task_id, changes, status=status, outcome=outcome, metadata=metadata, principal=principal
        )
    )


async def _changes(context: PluginContext, machine: str, snapshot: Snapshot) -> FileChanges:
    """Give what has changed; what cannot be found out is a warning, because a task must be able to end."""
    here = f"{str(context.project_root)!r} on machine {machine!r}"
    there = f"{snapshot.toplevel!r} on machine {snapshot.machine!r}"
    elsewhere = FileChanges(warnings=(f"the task began in {there}, and this server is in {here}: no files are listed",))
    if snapshot.machine != machine:
        return elsewhere
    try:
        if snapshot.toplevel not in _tops(context):
            await find_folder(context, snapshot.toplevel)
        return await changes_since(snapshot, partial(context.git, Git))
    except PathRefused:
        return elsewhere
    except GitError as error:
        return FileChanges(warnings=(f"no files are listed, because git failed: {error.message}",))


def _tops(context: PluginContext) -> list[str]:
    """The folders around the project and the allowed output roots that may be the top of their working tree."""
    folders = {parent for root in context.workspace.output_roots for parent in root.parents}
    repositories = (folder for folder in folders if os.path.lexists(folder / ".git"))
    return [str(folder) for folder in (*context.workspace.output_roots, *repositories)]
