"""What an agent reports of a step: within which bounds, whether it is a repeat, and what was read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepwork.errors import ArgumentError, StateError, ToolError, UnknownSession
from deepwork.gate.work import Reviewers, Work
from deepwork.models.jobs import Step
from deepwork.models.outputs import Outputs
from deepwork.models.sessions import Session, SessionStatus, StepProgress
from deepwork.models.standing import resume_call
from deepwork.sessions.standing import last_completed
from deepwork.sessions.transitions import Completion
from deepwork.text import is_blank, one_line

MAX_TEXT_BYTES = 64 * 1024
MAX_NAME_BYTES = 1024


@dataclass(frozen=True)
class Report:
    """An agent's report of a finished step. A blank or invisible override is ignored."""

    outputs: Mapping[str, Any]
    notes: str | None = None
    override: str | None = None
    session_id: str | None = None
    step_id: str | None = None

    @property
    def stated_override(self) -> str | None:
        return None if not self.override or is_blank(self.override) else self.override.strip()


@dataclass(frozen=True)
class Submission:
    """A report that was checked.

    Attributes:
        completion: Completes the step, if it passes.
        work: What is to be judged before that.
        is_strict: Whether only a person can let the step pass without a review.
    """

    completion: Completion
    work: Work
    is_strict: bool = False


@dataclass(frozen=True)
class Reading:
    """What was read for a report in one thread.

    Attributes:
        session: The session, ready for use.
        changes: What has changed in the job's definition since the session started.
        result: The submission, the completed step that the report repeats, the error of a report that cannot be
            accepted, or None if it reports nothing.
    """

    session: Session
    changes: list[str]
    result: Submission | StepProgress | ToolError | None = None

    def checked(self) -> Submission | StepProgress:
        """Return the submission, or the completed step that it repeats.

        Raises:
            ToolError: The report cannot be accepted.
        """
        if isinstance(self.result, ToolError):
            raise self.result
        if self.result is None:
            raise StateError("This call completes no step; call again")
        return self.result


def work_of(
    session: Session, step: Step, outputs: Outputs, notes: str | None, reviewers: Mapping[str, Reviewers] | None = None
) -> Work:
    """Return what the gate is to know of a reported step; without reviewers there is nothing to be judged."""
    return Work(
        session_id=session.session_id,
        job_name=session.job_name,
        workflow_name=session.workflow_name,
        step=step,
        outputs=outputs,
        outputs_by_step=session.outputs_by_step,
        notes=notes,
        reviewers=reviewers or {},
    )


def check_arguments(*, texts: Mapping[str, str | None], names: Mapping[str, str | None]) -> None:
    """Refuse texts over 64 KiB, and names and ids over 1 KiB, by the name of the parameter."""
    for values, limit, limit_text in ((texts, MAX_TEXT_BYTES, "64 KiB"), (names, MAX_NAME_BYTES, "1 KiB")):
        for name, value in values.items():
            try:
                size = len((value or "").encode())
            except UnicodeEncodeError:
                raise ArgumentError(
                    f"{name} contains half of a surrogate pair, which is not a character; send it as UTF-8 text"
                ) from None
            if size > limit:
                raise ArgumentError(f"{name} has {size:,} bytes; the limit is {limit_text}. Put details into a file.")


def require_texts(**texts: str) -> None:
    """Refuse texts that say nothing, naming the parameter."""
    for name, text in texts.items():
        if is_blank(text):
            raise ArgumentError(f"{name} is empty; nothing was changed", hint=f"Give {name} in a sentence.")


def session_over(session: Session, *, hint: str | None = None) -> StateError:
    """Make the error for a call to a session that is over; the hint is for agents unless another one is given."""
    reason = f" ({one_line(session.abort_reason)})" if session.abort_reason else ""
    what_came_of_it = (
        f"There is nothing left to report. To see what came of it, call {resume_call(session.session_id)}; "
        "start_workflow is for new work only."
    )
    return UnknownSession(
        f"Session {session.session_id!r} of {session.workflow} is over: {session.status}{reason}",
        hint=hint or what_came_of_it,
    )


def recorded_step(session: Session, step_id: str | None, outputs: Mapping[str, Any]) -> StepProgress | None:
    """Find the completed step that a call repeats; None if the call is for an open step.

    Raises:
        StateError: The step is neither open, nor completed with these outputs.
    """
    progress = session.step_progress.get(step_id or "")
    if progress and progress.reply and _is_same(progress, outputs):
        return progress
    if not session.is_active:
        raise session_over(session)
    if step_id is None or step_id in session.open_entry:
        return None
    current = f"the current step is {session.current_step_id!r}; nothing was changed"
    if progress and progress.completed_at:
        how = "with other outputs" if progress.reply else "with its group, never reported"
        raise StateError(
            f"Step {step_id!r} was already completed {how}; {current}",
            hint=f"To have it done again, your user runs: deepwork sessions reopen {session.session_id} {step_id} "
            "--reason TEXT",
        )
    place = f"of {session.workflow}, session {session.session_id!r}"
    if step_id in session.pinned.workflow.step_ids:
        raise StateError(f"Step {step_id!r} comes later in the steps {place}; {current}")
    raise StateError(f"{step_id!r} is not a step {place}; {current}")


def repeated_step(session: Session, outputs: Mapping[str, Any]) -> str | None:
    """Return a sentence if these are the outputs of the last completed step; else None."""
    progress = last_completed(session)
    if session.status is SessionStatus.ABORTED or progress is None or not _is_same(progress, outputs):
        return None
    over = "" if session.is_active else f", and with it the workflow {session.workflow} ({session.status})"
    return (
        f"These are the outputs of step {progress.step_id!r}, which is already completed{over}; if you never saw its "
        "reply, nothing else is lost"
    )


def _is_same(progress: StepProgress, outputs: Mapping[str, Any]) -> bool:
    """True if a step was completed with these outputs, as the agent wrote them or as they were stored."""
    return dict(outputs) in (progress.outputs, progress.reported)
