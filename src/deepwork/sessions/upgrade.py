"""Stored sessions made ready for use: their job's folder is looked up, and those of release 0.9 get a definition."""

from __future__ import annotations

from pathlib import Path

from deepwork.errors import JobLoadError, StateError, ToolError
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.lookup import choose_job, choose_workflow
from deepwork.models.jobs import Job
from deepwork.models.sessions import SCHEMA_VERSION, Session, StepProgress
from deepwork.sessions.definition import begun_step, check_unchanged, pin, read_instructions
from deepwork.sessions.transitions import outputs_by_step


def upgraded(session: Session, job: Job | JobLoadError | None, catalogue: Catalogue, project: Path) -> Session:
    """Check the stored definition, and look up the folder of the job; without one, pin what the job says now.

    Args:
        session: As it is stored.
        job: What the catalogue finds by the name of the session's job.
        catalogue: All jobs.
        project: The folder of the project.

    Raises:
        StateError: The definition was edited, or there is none and the position of the session means another step
            now; the error says what differs.
    """
    check_unchanged(session)
    if session.definition:
        return _in_folder(_with_content_digest(session), job, catalogue)
    if not session.is_active:
        return session
    try:
        chosen = choose_job(catalogue, session.job_name)
        workflow, _ = choose_workflow(chosen, session.workflow_name)
        entry = dict(enumerate(workflow.entries)).get(session.current_entry_index, ["nothing"])
        if entry[0] != session.current_step_id:
            raise StateError(
                f"it stands at step {session.current_step_id!r}, entry {session.current_entry_index + 1} of workflow "
                f"{workflow.name!r}, where now is {entry[0]!r}"
            )
        definition = pin(chosen, workflow)
        instructions = read_instructions(definition, entry, project)
    except ToolError as error:
        raise StateError(
            f"Session {session.session_id!r} was begun by an earlier release and cannot go on: {error.message}",
            hint="Restore the job as it was, or call abort_workflow with this session_id and start again.",
        ) from None
    steps = dict(session.step_progress)
    for step_id, text in instructions.items():
        progress = steps.get(step_id) or StepProgress(step_id=step_id, started_at=session.started_at)
        begun = begun_step(definition, step_id, text, outputs_by_step(session))
        steps[step_id] = progress.model_copy(update={"begun": begun})
    return session.model_copy(
        update={"schema_version": SCHEMA_VERSION, "definition": definition, "step_progress": steps}
    )


def _in_folder(session: Session, job: Job | JobLoadError | None, catalogue: Catalogue) -> Session:
    """Put the folder that a job source gives into a session: the stored definition decides steps, never places."""
    stored = Path(session.pinned.job_dir)
    folder = catalogue.folder_of(job, stored)
    return session if folder == stored else _with_job_dir(session, str(folder or ""))


def _with_job_dir(session: Session, job_dir: str) -> Session:
    definition = session.pinned.model_copy(update={"job_dir": job_dir})
    return session.model_copy(update={"definition": definition})


def _with_content_digest(session: Session) -> Session:
    """Return a session, whose definition was checked, with the digest that release 1.0.0.dev0 did not write."""
    if session.pinned.content_digest is not None:
        return session
    definition = session.pinned.model_copy(update={"content_digest": session.pinned.stored_digest})
    return session.model_copy(update={"definition": definition})


def pinned_as(session: Session, upgraded_session: Session) -> Session:
    """Upgrade a session that was read anew as it was upgraded before.

    Raises:
        StateError: Its definition was edited meanwhile.
    """
    check_unchanged(session)
    if session.definition:
        job_dir = upgraded_session.pinned.job_dir
        session = _with_content_digest(session)
        return session if session.pinned.job_dir == job_dir else _with_job_dir(session, job_dir)
    begun = {step_id: progress.begun for step_id, progress in upgraded_session.step_progress.items()}
    steps = {
        **upgraded_session.step_progress,
        **{
            step_id: progress.model_copy(update={"begun": begun.get(step_id)})
            for step_id, progress in session.step_progress.items()
        },
    }
    update = {
        "schema_version": SCHEMA_VERSION,
        "definition": upgraded_session.definition,
        "step_progress": steps,
    }
    return session.model_copy(update=update)
