"""Going back in a session: a step that was completed is done again. Pure."""

from __future__ import annotations

from deepwork.errors import StateError
from deepwork.models.sessions import Session, SessionStatus, StepProgress
from deepwork.sessions.definition import entry_of
from deepwork.sessions.transitions import begin_again


def reopen(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Make a step the current one: it and all later steps are open again, and their reports count as new ones.

    Of a group, the step, its primary, and the members that nobody has reported are open again.

    Raises:
        StateError: The step is not one of the workflow, was not begun yet, or was begun under release 0.9.
    """
    if session.definition is None:
        raise StateError(f"Session {session.session_id!r} is of release 0.9, which kept no steps to go back to")
    entries = session.pinned.workflow.entries
    index = _index(session, step_id)
    earlier = {name for entry in entries[:index] for name in entry}
    progress = {name: item for name, item in session.step_progress.items() if name in earlier}
    for name in entries[index]:
        item = session.step_progress[name]
        stays = item.completed_at and item.reply and name not in (step_id, entries[index][0])
        progress[name] = item if stays else _begun_again(item)
    session = session.model_copy(
        update={
            "status": SessionStatus.ACTIVE,
            "current_entry_index": index,
            "current_step_id": entries[index][0],
            "step_progress": progress,
            "completed_at": None,
            "abort_reason": None,
            "abort_reply": None,
        }
    )
    return begin_again(session, step_id, reason, now=now)


def _index(session: Session, step_id: str) -> int:
    workflow = session.pinned.workflow
    if step_id not in workflow.step_ids:
        raise StateError(f"{step_id!r} is no step of {session.workflow}; it has: {', '.join(workflow.step_ids)}")
    if step_id not in session.step_progress:
        begun = ", ".join(session.step_progress)
        raise StateError(f"Step {step_id!r} of {session.workflow} was not begun yet; begun were: {begun}")
    if session.step_progress[step_id].begun is None:
        raise StateError(f"Step {step_id!r} was done under release 0.9, which kept no instructions to go back to")
    return workflow.entries.index(entry_of(session.pinned, step_id))


def _begun_again(progress: StepProgress) -> StepProgress:
    """Keep of a step only what it was begun with."""
    return StepProgress(step_id=progress.step_id, started_at=progress.started_at, begun=progress.begun)
