"""What an agent is told to begin a step, always from what the session holds."""

from __future__ import annotations

from collections.abc import Sequence

from deepwork.engine.resume import members_text
from deepwork.models.jobs import Review, StepOutput
from deepwork.models.outputs import KINDS
from deepwork.models.replies import BeginStep, ExpectedOutput, GroupMember, ReviewInfo, StepInputInfo
from deepwork.models.sessions import BegunInput, BegunStep, Session
from deepwork.sessions.definition import entry_of


def begin_step(session: Session, step_id: str, open_members: Sequence[str] | None = None) -> BeginStep:
    """Tell how to begin the step, with the other open members of its group.

    Args:
        session: The session.
        step_id: The step.
        open_members: Those that were open, for a reply that is given again; those of now if not given.
    """
    definition = session.pinned
    others = _open_others(session, step_id) if open_members is None else open_members
    begun = _begun(session, step_id)
    return BeginStep(
        session_id=session.session_id,
        step_id=step_id,
        job_dir=definition.job_dir,
        step_expected_outputs=expected_outputs(definition.steps[step_id].outputs),
        step_reviews=_reviews(definition.steps[step_id].reviews),
        step_inputs=_inputs(begun.inputs),
        step_instructions=begun.instructions + concurrent_text(session, step_id, open_members),
        common_job_info=definition.common_job_info,
        branch_name=session.branch_name if step_id in definition.workflow.entries[0] else None,
        concurrent_steps=[_member(session, member) for member in others],
    )


def expected_outputs(outputs: dict[str, StepOutput]) -> list[ExpectedOutput]:
    """Tell what a step has to make (JOBS-REQ-001.3.13, 14)."""
    return [
        ExpectedOutput(
            name=name,
            type=output.type,
            description=output.description,
            required=output.required,
            syntax_for_finished_step_tool=KINDS[output.type].syntax,
        )
        for name, output in outputs.items()
    ]


def concurrent_text(session: Session, step_id: str, open_members: Sequence[str] | None = None) -> str:
    """Tell how to do a group; nothing for a single step. For `open_members` see `begin_step`."""
    entry = entry_of(session.pinned, step_id)
    if len(entry) == 1:
        return ""
    text = f"\n\n**CONCURRENT STEPS**\n\n{group_text(session, step_id, open_members)}"
    others = _open_others(session, step_id) if open_members is None else open_members
    if not others:
        return text
    return (
        f"{text} Use the Task tool to give {' and '.join(others)} to "
        f"{'a sub-agent' if len(others) == 1 else 'sub-agents, one each'}; what they need is in concurrent_steps. "
        f"Report those first, each by finished_step(session_id={session.session_id!r}, step_id=<its id>, "
        f"outputs=<its own>), and {entry[0]!r} last."
    )


def group_text(session: Session, step_id: str, open_members: Sequence[str] | None = None) -> str:
    """Say which members of a group are open; nothing for a single step. For `open_members` see `begin_step`."""
    primary, *members = entry_of(session.pinned, step_id)
    if not members:
        return ""
    if open_members is None:
        open_members = [member for member in members if not _is_completed(session, member)]
    return members_text(primary, open_members)


def _open_others(session: Session, step_id: str) -> list[str]:
    entry = entry_of(session.pinned, step_id)
    return [member for member in entry if member != step_id and not _is_completed(session, member)]


def _is_completed(session: Session, step_id: str) -> bool:
    progress = session.step_progress.get(step_id)
    return progress is not None and progress.completed_at is not None


def _member(session: Session, step_id: str) -> GroupMember:
    step, begun = session.pinned.steps[step_id], _begun(session, step_id)
    return GroupMember(
        step_id=step_id,
        step_expected_outputs=expected_outputs(step.outputs),
        step_reviews=_reviews(step.reviews),
        step_inputs=_inputs(begun.inputs),
        step_instructions=begun.instructions,
    )


def _begun(session: Session, step_id: str) -> BegunStep:
    progress = session.step_progress.get(step_id)
    if progress is None or progress.begun is None:
        return BegunStep(step_id=step_id, instructions="")
    return progress.begun


def _inputs(inputs: list[BegunInput]) -> list[StepInputInfo]:
    return [
        StepInputInfo(name=item.name, description=item.description, from_step=item.from_step, path=item.path)
        for item in inputs
    ]


def _reviews(reviews: list[Review]) -> list[ReviewInfo]:
    return [
        ReviewInfo(
            run_each=review.run_each,
            quality_criteria=review.quality_criteria,
            additional_review_guidance=review.additional_review_guidance,
        )
        for review in reviews
    ]
