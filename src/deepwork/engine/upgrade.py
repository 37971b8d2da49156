"""Sessions of release 0.9, which remember no definition of their workflow."""

from __future__ import annotations

from pathlib import Path

from deepwork.engine.begin import pin, read_entry
from deepwork.engine.choose import choose_job, choose_workflow
from deepwork.engine.progress import outputs_by_step
from deepwork.errors import StateError, ToolError
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.sessions import SCHEMA_VERSION, Session, StepProgress


def upgraded(session: Session, catalogue: Catalogue, project: Path) -> Session:
    """Pin what the job says now, if the session's position means the same step in it.

    Raises:
        StateError: It does not; the error says what differs.
    """
    if session.definition or not session.is_active:
        return session
    try:
        job = choose_job(catalogue, session.job_name)
        workflow, _ = choose_workflow(job, session.workflow_name)
        there = dict(enumerate(workflow.entries)).get(session.current_entry_index, ["nothing"])
        if there[0] != session.current_step_id:
            raise StateError(
                f"it stands at step {session.current_step_id!r}, entry {session.current_entry_index + 1} of workflow "
                f"{workflow.name!r}, where now is {there[0]!r}"
            )
        definition = pin(job, workflow)
        begun = read_entry(definition, there, outputs_by_step(session), project)
    except ToolError as error:
        raise StateError(
            f"Session {session.session_id!r} was begun by an earlier release and cannot go on: {error.message}",
            hint="Restore the job as it was, or call abort_workflow with this session_id and start again.",
        ) from None
    steps = dict(session.step_progress)
    for step in begun:
        known = steps.get(step.step_id) or StepProgress(step_id=step.step_id, started_at=session.started_at)
        steps[step.step_id] = known.model_copy(update={"begun": step})
    return session.model_copy(
        update={"schema_version": SCHEMA_VERSION, "definition": definition, "step_progress": steps}
    )
