"""What an agent reports of a step, and what was read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deepwork.errors import StateError, ToolError
from deepwork.models.sessions import Session
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
class Reading:
    """What was read for a report in one thread: the session, ready for use, and how the report was checked.

    Attributes:
        changes: What has changed in the job's definition since the session started.
        checked: The completion of the step, the error of a report that cannot be accepted, or None for one that
            completes nothing.
    """

    session: Session
    changes: list[str]
    checked: Completion | ToolError | None

    def completion(self) -> Completion:
        """Give the completion.

        Raises:
            ToolError: The report cannot be accepted.
        """
        if isinstance(self.checked, ToolError):
            raise self.checked
        if self.checked is None:
            raise StateError("This call completes no step; call again")
        return self.checked
