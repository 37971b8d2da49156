"""What a session keeps of its job, so that later edits do not reach it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from deepwork.errors import MissingInstructions, PathRefused, StateError
from deepwork.files.paths import describe, read_regular
from deepwork.models.jobs import FileInput, Job, Step, UserInput, Workflow
from deepwork.models.outputs import Outputs
from deepwork.models.sessions import BegunInput, BegunStep, PinnedDefinition, Session

MAX_INSTRUCTIONS = 1024 * 1024
# Of all steps of a group together: each step keeps its own text, also where they share a file.
MAX_GROUP_INSTRUCTIONS = 4 * 1024 * 1024


def pin(job: Job, workflow: Workflow) -> PinnedDefinition:
    """Keep what a session needs of a job."""
    definition = PinnedDefinition(
        digest="",
        job_dir=str(job.job_dir),
        common_job_info=job.definition.common_job_info_provided_to_all_steps_at_runtime,
        workflow=workflow,
        steps={step.id: step for step in job.definition.steps if step.id in set(workflow.step_ids)},
    )
    # As it will be read again: what is stored has every field, and digests are of what is stored.
    return with_digests(PinnedDefinition.model_validate_json(definition.model_dump_json()))


def with_digests(definition: PinnedDefinition) -> PinnedDefinition:
    """Return a definition with the digests of what it says."""
    digests = {"digest": _first_digest(definition), "content_digest": definition.stored_digest}
    return definition.model_copy(update=digests)


def is_unchanged(session: Session) -> bool:
    """True if the stored definition of a session is the one with which it was started."""
    definition = session.definition
    if definition is None:
        return session.schema_version == 0  # release 0.9 kept none
    if definition.content_digest is None:
        return definition.digest == _first_digest(definition)
    return definition.content_digest == definition.stored_digest


def check_unchanged(session: Session) -> None:
    """Refuse a session whose stored definition was edited: its reviews may have been taken out.

    Raises:
        StateError: It was edited; the error says how a person can end the session or go on with it.
    """
    if is_unchanged(session):
        return
    session_id, step_id = session.session_id, session.current_step_id
    raise StateError(
        f"Session {session_id!r} was edited where it is stored: its workflow, steps or reviews are not those with "
        "which it was started; nothing was changed",
        hint=f"`deepwork sessions show {session_id}` shows the session. Call abort_workflow with this session_id, or "
        f"ask the user to run `deepwork sessions reopen {session_id} {step_id} --reason TEXT --accept-definition` in a "
        "terminal, which goes on with what is stored now.",
    )


def _first_digest(definition: PinnedDefinition) -> str:
    """Return the digest as release 1.0.0.dev0 made it: of what is stored, with its keys in the order of the models."""
    steps = [definition.steps[step_id] for step_id in definition.workflow.step_ids if step_id in definition.steps]
    parts = [definition.workflow, *steps]
    workflow, *texts = (part.model_dump_json(exclude_unset=True) for part in parts)
    return sha256("\0".join([workflow, definition.common_job_info, *texts]).encode()).hexdigest()


class Definitions:
    """The definitions of jobs. A job file that has not changed is the same object, and is pinned once."""

    def __init__(self) -> None:
        self._pinned: dict[str, tuple[Job, dict[str, PinnedDefinition]]] = {}

    def of(self, job: Job, workflow: Workflow) -> PinnedDefinition:
        """Give what a session of a workflow keeps."""
        known_job, definitions = self._pinned.get(job.name, (None, {}))
        if known_job is not job:
            definitions = {}
            self._pinned[job.name] = job, definitions
        if workflow.name not in definitions:
            definitions[workflow.name] = pin(job, workflow)
        return definitions[workflow.name]


def entry_of(definition: PinnedDefinition, step_id: str) -> list[str]:
    """Give the entry of the workflow in which a step stands."""
    return next(entry for entry in definition.workflow.entries if step_id in entry)


def read_instructions(
    definition: PinnedDefinition, entry: Sequence[str], project: Path, *, owner: str = "this job"
) -> dict[str, str]:
    """Read the instructions of every step of an entry, before anything is changed or paid for.

    Args:
        definition: What the session keeps of its job.
        entry: The steps.
        project: The folder of the project.
        owner: The job, or the step that is reported with its session, for the error of a job that is gone.

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


def begun_step(
    definition: PinnedDefinition, step_id: str, instructions: str, outputs_by_step: Mapping[str, Outputs]
) -> BegunStep:
    """Put together what a step is begun with: its instructions, and the files of earlier steps."""
    inputs = [_input(item, outputs_by_step) for item in definition.steps[step_id].inputs]
    return BegunStep(step_id=step_id, instructions=instructions, inputs=inputs)


def _input(item: UserInput | FileInput, outputs_by_step: Mapping[str, Outputs]) -> BegunInput:
    if isinstance(item, UserInput):
        return BegunInput(name=item.name, description=item.description)
    path = outputs_by_step.get(item.from_step, {}).get(item.file)
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
