"""The errors of the tools, as agents read them: an object with a code."""

from __future__ import annotations

import json
from typing import ClassVar

from deepwork.errors import ToolError


class TrackingError(ToolError):
    """A call that cannot be carried out. Its text is JSON; message and hint are for people.

    Attributes:
        code: What kind of error it is.
        recoverable: Whether the agent can correct the call.
    """

    code: ClassVar[str] = "INTERNAL_ERROR"
    recoverable: ClassVar[bool] = False

    def __str__(self) -> str:
        """Write the error as the tools give it."""
        error = {
            "error": True,
            "code": self.code,
            "message": self.message,
            "recoverable": self.recoverable,
            "suggestion": self.hint,
        }
        return json.dumps(error, ensure_ascii=False)


class InvalidCall(TrackingError):
    """A call that its arguments, or the state of what it names, do not allow."""

    code = "VALIDATION_ERROR"
    recoverable = True


class NotFound(TrackingError):
    """An id that does not exist."""

    code = "NOT_FOUND"


class DatabaseFailure(TrackingError):
    """The database could not be read or written; nothing was changed."""

    code = "DATABASE_ERROR"
    recoverable = True
