"""What an agent reports of a step, and what was read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepwork.errors import StateError, ToolError
from deepwork.gate.work import Work
from deepwork.models.sessions import Session, StepProgress
from deepwork.sessions.transitions import Completion
from deepwork.text.foreign import is_blank


@dataclass(frozen=True)
class Report:
    """What an agent says of a step that it has finished. An override of which nothing can be seen is none."""

    outputs: Mapping[str, Any]
    notes: str | None = None
    override: str | None = None
    session_id: str | None = None
    step_id: str | None = None

    @property
    def stated_override(self) -> str | None:
        return None if is_blank(self.override or "") else (self.override or "").strip()


@dataclass(frozen=True)
class Submission:
    """A report that was checked: what completes its step, and what is to be judged before that, if anything is."""

    completion: Completion
    work: Work | None


@dataclass(frozen=True)
class Reading:
    """What was read for a report in one thread.

    Attributes:
        session: The session, ready for use.
        changes: What has changed in the job's definition since the session started.
        result: The submission, the completed step of which the report is a repeat, the error of a report that cannot
            be accepted, or None if it reports nothing.
    """

    session: Session
    changes: list[str]
    result: Submission | StepProgress | ToolError | None = None

    def checked(self) -> Submission | StepProgress:
        """Return the submission, or the completed step of which it is a repeat.

        Raises:
            ToolError: The report cannot be accepted.
        """
        if isinstance(self.result, ToolError):
            raise self.result
        if self.result is None:
            raise StateError("This call completes no step; call again")
        return self.result
