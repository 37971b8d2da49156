"""What the agent needs to begin a step: read once when the step begins, told again from the session."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from deepwork.errors import MissingInstructions, PathRefused
from deepwork.models.jobs import FileInput, Job, Review, Step, StepOutput, UserInput, Workflow
from deepwork.models.replies import BeginStep, ExpectedOutput, GroupMember, Outputs, ReviewInfo
from deepwork.models.sessions import BegunInput, BegunStep, PinnedDefinition, Session
from deepwork.workspace import describe, read_regular

MAX_INSTRUCTIONS = 1024 * 1024

SYNTAX = {"file": "filepath", "files": "array of filepaths for all individual files"}


def pin(job: Job, workflow: Workflow) -> PinnedDefinition:
    """Keep what a session needs of a job, so that later edits do not reach it."""
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


def read_entry(
    definition: PinnedDefinition, entry: list[str], outputs_by_step: dict[str, Outputs], project: Path
) -> list[BegunStep]:
    """Read the instructions of every step of an entry, before anything is changed or paid for.

    Raises:
        MissingInstructions: A file is missing, lies outside of the job's folder, or is no text.
    """
    return [
        BegunStep(
            step_id=step_id,
            instructions=_read_instructions(definition, definition.steps[step_id], project),
            inputs=[_input(given, outputs_by_step) for given in definition.steps[step_id].inputs],
        )
        for step_id in entry
    ]


def begin_step(session: Session, step_id: str) -> BeginStep:
    """Tell how to begin the step, with the other members of its group."""
    definition = session.pinned
    entry = entry_of(definition, step_id)
    begun = _begun(session, step_id)
    return BeginStep(
        session_id=session.session_id,
        step_id=step_id,
        job_dir=definition.job_dir,
        step_expected_outputs=expected_outputs(definition.steps[step_id].outputs),
        step_reviews=_reviews(definition.steps[step_id].reviews),
        step_inputs=begun.inputs,
        step_instructions=begun.instructions + concurrent_text(session.session_id, entry),
        common_job_info=definition.common_job_info,
        branch_name=session.branch_name,
        concurrent_steps=[
            GroupMember(
                step_id=member,
                step_expected_outputs=expected_outputs(definition.steps[member].outputs),
                step_reviews=_reviews(definition.steps[member].reviews),
                step_inputs=_begun(session, member).inputs,
                step_instructions=_begun(session, member).instructions,
            )
            for member in entry
            if member != step_id
        ],
    )


def entry_of(definition: PinnedDefinition, step_id: str) -> list[str]:
    """Give the entry of the workflow in which a step stands."""
    return next(entry for entry in definition.workflow.entries if step_id in entry)


def expected_outputs(outputs: dict[str, StepOutput]) -> list[ExpectedOutput]:
    """Tell what a step has to make (JOBS-REQ-001.3.13, 14)."""
    return [
        ExpectedOutput(
            name=name,
            type=output.type,
            description=output.description,
            required=output.required,
            syntax_for_finished_step_tool=SYNTAX[output.type],
        )
        for name, output in outputs.items()
    ]


def concurrent_text(session_id: str, entry: list[str]) -> str:
    """Tell how to do a group; nothing for a single step."""
    if len(entry) == 1:
        return ""
    primary, *members = entry
    return (
        f"\n\n**CONCURRENT STEPS**\n\n{len(entry)} steps are to be done at the same time: {', '.join(entry)}. "
        f"Use the Task tool to give each of {', '.join(members)} to a sub-agent; what it needs stands in "
        f"concurrent_steps. Report those first, each by finished_step(session_id={session_id!r}, step_id=<its id>, "
        f"outputs=<its own>), and {primary!r} last: reporting it ends the group."
    )


def _begun(session: Session, step_id: str) -> BegunStep:
    progress = session.step_progress.get(step_id)
    if progress is None or progress.begun is None:
        return BegunStep(step_id=step_id, instructions="")
    return progress.begun


def _reviews(reviews: list[Review]) -> list[ReviewInfo]:
    return [
        ReviewInfo(
            run_each=review.run_each,
            quality_criteria=review.quality_criteria,
            additional_review_guidance=review.additional_review_guidance,
        )
        for review in reviews
    ]


def _input(given: UserInput | FileInput, outputs_by_step: dict[str, Outputs]) -> BegunInput:
    if isinstance(given, UserInput):
        return BegunInput(name=given.name, description=given.description)
    path = outputs_by_step.get(given.from_step, {}).get(given.file)
    return BegunInput(name=given.file, from_step=given.from_step, path=path)


def _read_instructions(definition: PinnedDefinition, step: Step, project: Path) -> str:
    given = step.instructions_file
    folder = Path(definition.job_dir)
    within = project if folder.is_relative_to(project) else None
    try:
        return read_regular(given, [folder], limit=MAX_INSTRUCTIONS, within=within).decode()
    except FileNotFoundError:
        reason = "Instructions file not found"
    except UnicodeDecodeError:
        reason = "Instructions file is not UTF-8 text"
    except (PathRefused, OSError) as error:
        reason = f"Instructions file {describe(error)}".replace("the project", "the job's folder")
    raise MissingInstructions(
        f"{reason}: {given!r} of step {step.id!r} in {definition.job_dir}",
        hint="Nothing was changed. Put the file there and call again, or abort_workflow.",
    )
