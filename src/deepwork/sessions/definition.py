"""What a session keeps of its job, so that later edits do not reach it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from deepwork.errors import MissingInstructions, PathRefused
from deepwork.files.paths import describe, read_regular
from deepwork.models.jobs import FileInput, Job, Step, UserInput, Workflow
from deepwork.models.outputs import Outputs
from deepwork.models.sessions import BegunInput, BegunStep, PinnedDefinition

MAX_INSTRUCTIONS = 1024 * 1024


def pin(job: Job, workflow: Workflow) -> PinnedDefinition:
    """Keep what a session needs of a job."""
    steps = {step.id: step for step in job.definition.steps if step.id in set(workflow.step_ids)}
    common = job.definition.common_job_info_provided_to_all_steps_at_runtime
    texts = [
        workflow.model_dump_json(),
        common,
        *(steps[step_id].model_dump_json() for step_id in workflow.step_ids),
    ]
    return PinnedDefinition(
        digest=sha256("\0".join(texts).encode()).hexdigest(),
        job_dir=str(job.job_dir),
        common_job_info=common,
        workflow=workflow,
        steps=steps,
    )


def entry_of(definition: PinnedDefinition, step_id: str) -> list[str]:
    """Give the entry of the workflow in which a step stands."""
    return next(entry for entry in definition.workflow.entries if step_id in entry)


def read_instructions(definition: PinnedDefinition, entry: Sequence[str], project: Path) -> dict[str, str]:
    """Read the instructions of every step of an entry, before anything is changed or paid for.

    Raises:
        MissingInstructions: A file is missing, lies outside of the job's folder, or is not text.
    """
    return {step_id: _read_instructions(definition, definition.steps[step_id], project) for step_id in entry}


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


def _read_instructions(definition: PinnedDefinition, step: Step, project: Path) -> str:
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
