"""What can go wrong with a database, for agents and people."""

from __future__ import annotations

from deepwork.errors import StorageError, ToolError
from deepwork.text import visible


class DatabaseError(StorageError):
    """The database did not answer, or cannot be used; nothing was changed.

    Its message is one line: paths and answers of drivers are escaped.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(visible(message), hint=hint and visible(hint))


class UnstorableText(ToolError):
    """A text that PostgreSQL cannot hold. It is refused on SQLite too, so that data can move from one to the other.

    Args:
        message: What is wrong.
        field: Where the text stands.
    """

    def __init__(self, message: str, *, field: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class RequestConflict(ToolError):
    """A request id that was used before, with other arguments."""


class LeaseLost(ToolError):
    """A lease that has run out, or that another holder has taken since."""
