"""The beginning and the end of a task, where git and the database meet. git runs outside of transactions."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial
from typing import Any

from deepwork.api import Git, PluginContext
from deepwork.errors import GitError, PathRefused
from deepwork_tracking import tasks
from deepwork_tracking.arguments import TaskMetadata
from deepwork_tracking.changes import FileChanges, changes_since
from deepwork_tracking.database import TrackingDatabase
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.places import find_folder
from deepwork_tracking.snapshots import TreeSnapshot, take_snapshot
from deepwork_tracking.tasks import EndOfTask, NewTask


async def start_task(
    context: PluginContext, database: TrackingDatabase, principal: str, path: str | None, **about: Any
) -> dict[str, Any]:
    """Take a snapshot, and begin a task; `about` is all of it but the folder of the work.

    Raises:
        TrackingError: The task cannot begin.
    """
    new = NewTask(**{**about, "areas": about["areas"] or []})
    database.check(asdict(new))
    # The snapshot may take a while; a call that cannot succeed is refused before.
    await database.read(lambda transaction: tasks.check_start(transaction, new))
    try:
        folder = await find_folder(context, path)
    except PathRefused as error:
        hint = "Leave it out to work in the project."
        raise InvalidCall(f"path: {path!r} {error.message}", hint=hint) from error
    snapshot = await take_snapshot(folder, (await database.opened()).machine, partial(context.git, Git))
    return await database.write(lambda transaction: tasks.begin(transaction, new, snapshot, principal))


async def complete_task(
    context: PluginContext, database: TrackingDatabase, principal: str, metadata: TaskMetadata | None, **ending: Any
) -> dict[str, Any]:
    """Compare the files with the snapshot of a task, and end the task.

    Raises:
        TrackingError: The task cannot end.
    """
    end = EndOfTask(metadata=metadata or TaskMetadata(), **ending)
    texts = {"outcome": end.outcome.model_dump(), "metadata": end.metadata.model_dump()}
    database.check({"task_id": end.task_id, **texts})
    beginning = await database.read(lambda transaction: tasks.beginning(transaction, end.task_id))
    changes = await _changes(context, (await database.opened()).machine, beginning.snapshot)
    return await database.write(
        lambda transaction: tasks.finish(transaction, beginning.workflow_id, end, changes, principal)
    )


async def _changes(context: PluginContext, machine: str, snapshot: TreeSnapshot) -> FileChanges:
    """Return what has changed; what cannot be found out is a warning, because a task must be able to end."""
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
