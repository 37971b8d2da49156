"""What a session keeps of its job, so that later edits do not reach it, and how it is made ready for use again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deepwork.errors import JobLoadError, MissingInstructions, PathRefused, StateError, ToolError
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.lookup import choose_job, choose_workflow
from deepwork.models.jobs import (
    MAX_GROUP_INSTRUCTIONS,
    MAX_INSTRUCTIONS,
    FileInput,
    Job,
    Step,
    UserInput,
    Workflow,
)
from deepwork.models.sessions import (
    SCHEMA_VERSION,
    BegunInput,
    BegunStep,
    PinnedDefinition,
    Session,
    StepProgress,
)
from deepwork.paths.paths import describe, read_regular


def pin(job: Job, workflow: Workflow) -> PinnedDefinition:
    """Keep what a session needs of a job."""
    definition = PinnedDefinition(
        digest="",
        job_dir=str(job.job_dir),
        common_job_info=job.definition.common_job_info_provided_to_all_steps_at_runtime,
        workflow=workflow,
        steps={step.id: step for step in job.definition.steps if step.id in set(workflow.step_ids)},
    )
    # As it will be read again: a stored definition has every field, and digests are of the stored form.
    return with_digests(PinnedDefinition.model_validate_json(definition.model_dump_json()))


def with_digests(definition: PinnedDefinition) -> PinnedDefinition:
    """Return a definition with the digests of what it says."""
    digests = {"digest": definition.first_digest, "content_digest": definition.stored_digest}
    return definition.model_copy(update=digests)


def check_unchanged(session: Session) -> None:
    """Refuse a session whose stored definition was edited: its reviews may have been taken out.

    Raises:
        StateError: It was edited; the error says how a person can end the session or go on with it.
    """
    if session.is_unchanged:
        return
    session_id, step_id = session.session_id, session.current_step_id
    raise StateError(
        f"Session {session_id!r} was edited where it is stored: its workflow, steps or reviews are not those with "
        "which it was started; nothing was changed",
        hint=f"`deepwork sessions show {session_id}` shows the session. Call abort_workflow with this session_id, or "
        f"ask the user to run `deepwork sessions reopen {session_id} {step_id} --reason TEXT --accept-definition` in a "
        "terminal, which goes on with what is stored now.",
    )


class Definitions:
    """The definitions of jobs. A job file that has not changed is the same object, and is pinned once."""

    def __init__(self) -> None:
        self._pinned: dict[str, tuple[Job, dict[str, PinnedDefinition]]] = {}

    def of(self, job: Job, workflow: Workflow) -> PinnedDefinition:
        """Return what a session of a workflow keeps."""
        job_name = job.definition.name
        known_job, definitions = self._pinned.get(job_name, (None, {}))
        if known_job is not job:
            definitions = {}
            self._pinned[job_name] = job, definitions
        if workflow.name not in definitions:
            definitions[workflow.name] = pin(job, workflow)
        return definitions[workflow.name]


def read_instructions(
    definition: PinnedDefinition, entry: Sequence[str], project: Path, *, owner: str = "this job"
) -> dict[str, str]:
    """Read the instructions of every step of an entry, before anything is changed or paid for.

    The error for a job that is gone names the owner: the job, or the step that is reported, with its session.

    Raises:
        MissingInstructions: A file is missing, lies outside of the job's folder, is not text, or is too large.
    """
    texts: dict[str, str] = {}
    size = 0
    for step_id in entry:
        step = definition.steps[step_id]
        if step.instructions_file not in texts:
            texts[step.instructions_file] = _read_instructions(definition, step, project, owner)
        size += len(texts[step.instructions_file])
        if size > MAX_GROUP_INSTRUCTIONS:
            raise MissingInstructions(
                f"the instructions of the group of step {entry[0]!r} have more than {MAX_GROUP_INSTRUCTIONS:,} "
                f"characters together; nothing was changed",
                hint="Divide the group, or put what its steps share into the job's common info.",
            )
    return {step_id: texts[definition.steps[step_id].instructions_file] for step_id in entry}


def begun_step(step: Step, instructions: str, earlier: Mapping[str, StepProgress]) -> BegunStep:
    """Put together what a step is begun with: its instructions, and the files of earlier steps."""
    inputs = [_input(item, earlier) for item in step.inputs]
    return BegunStep(step_id=step.id, instructions=instructions, inputs=inputs)


def _input(item: UserInput | FileInput, earlier: Mapping[str, StepProgress]) -> BegunInput:
    if isinstance(item, UserInput):
        return BegunInput(name=item.name, description=item.description)
    progress = earlier.get(item.from_step)
    path = progress.outputs.get(item.file) if progress else None
    return BegunInput(name=item.file, from_step=item.from_step, path=path)


def _read_instructions(definition: PinnedDefinition, step: Step, project: Path, owner: str) -> str:
    if not definition.job_dir:
        raise MissingInstructions(
            f"Instructions file not found: {step.instructions_file!r} of step {step.id!r}: no job source of this "
            f"server has the job any more ({owner})",
            hint="Nothing was changed. Restore the job and call again, or abort_workflow.",
        )
    folder = Path(definition.job_dir)
    within = project if folder.is_relative_to(project) else None
    try:
        return read_regular(step.instructions_file, [folder], limit=MAX_INSTRUCTIONS, within=within).decode()
    except FileNotFoundError:
        reason = "Instructions file not found"
    except UnicodeDecodeError:
        reason = "Instructions file is not UTF-8 text"
    except (PathRefused, OSError) as error:
        reason = f"Instructions file {describe(error)}".replace("the project", "the job's folder")
    raise MissingInstructions(
        f"{reason}: {step.instructions_file!r} of step {step.id!r} in {definition.job_dir}",
        hint="Nothing was changed. Put the file there and call again, or abort_workflow.",
    )


def upgraded(session: Session, job: Job | JobLoadError | None, catalogue: Catalogue, project: Path) -> Session:
    """Check the stored definition, and look up the folder of the job; without one, pin the job's present definition.

    The stored definition decides steps, never places. A session of release 0.9 that is over stays without one. The job
    is what the catalogue finds by the name of the session's job.

    Raises:
        StateError: The definition was edited, or is missing and the position of the session means another step now; the
            error says what differs.
    """
    definition = session.definition
    if definition is None and not session.is_active:
        return session
    check_unchanged(session)
    if definition:
        folder = catalogue.folder_of(job, Path(definition.job_dir))
        return _located(session, definition, str(folder or ""))
    try:
        definition, instructions = _pinned_now(session, catalogue, project)
    except ToolError as error:
        raise StateError(
            f"Session {session.session_id!r} was begun by an earlier release and cannot go on: {error.message}",
            hint="Restore the job as it was, or call abort_workflow with this session_id and start again.",
        ) from None
    steps = dict(session.step_progress)
    for step_id, text in instructions.items():
        progress = steps.get(step_id) or StepProgress(step_id=step_id, started_at=session.started_at)
        begun = begun_step(definition.steps[step_id], text, session.step_progress)
        steps[step_id] = progress.model_copy(update={"begun": begun})
    return session.model_copy(
        update={"schema_version": SCHEMA_VERSION, "definition": definition, "step_progress": steps}
    )


def _pinned_now(session: Session, catalogue: Catalogue, project: Path) -> tuple[PinnedDefinition, dict[str, str]]:
    """Pin the present definition of a session's job, and read the instructions of its open entry.

    Raises:
        ToolError: There is no such job, or the position of the session means another step now.
    """
    job = choose_job(catalogue, session.job_name)
    workflow, _ = choose_workflow(job, session.workflow_name)
    entry = dict(enumerate(workflow.entries)).get(session.current_entry_index, ["nothing"])
    if entry[0] != session.current_step_id:
        raise StateError(
            f"it stands at step {session.current_step_id!r}, entry {session.current_entry_index + 1} of workflow "
            f"{workflow.name!r}, where now is {entry[0]!r}"
        )
    definition = pin(job, workflow)
    return definition, read_instructions(definition, entry, project)


def upgraded_alike(session: Session, upgraded_session: Session) -> Session:
    """Upgrade a session that was read anew as it was upgraded before.

    Raises:
        StateError: Its definition was edited meanwhile.
    """
    check_unchanged(session)
    if session.definition:
        return _located(session, session.definition, upgraded_session.pinned.job_dir)
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


def _located(session: Session, definition: PinnedDefinition, job_dir: str) -> Session:
    """Return a session with the folder of its job, and with the digest that release 1.0.0.dev0 did not write.

    Its definition was checked.
    """
    update = {"job_dir": job_dir, "content_digest": definition.stored_digest}
    if (definition.job_dir, definition.content_digest) == (*update.values(),):
        return session
    return session.model_copy(update={"definition": definition.model_copy(update=update)})
