"""What callers may pass, strictly: a text is not a number, and a number is not a boolean."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints

from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.words import TestsStatus

MAX_TEXT = 65_536
MAX_ITEM = 8_192
MAX_ITEMS = 200
MAX_METADATA_BYTES = 65_536

Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=MAX_TEXT)]
OptionalText = Annotated[str, StringConstraints(strict=True, max_length=MAX_TEXT)] | None
Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)]
Message = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500)]
Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=64)]
Texts = (
    Annotated[list[Annotated[str, StringConstraints(strict=True, max_length=MAX_ITEM)]], Field(max_length=MAX_ITEMS)]
    | None
)
Flag = Annotated[bool, Strict()]
PhaseNumber = Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
PhaseCount = Annotated[int, Strict(), Field(ge=1, le=100)]
Progress = (
    Annotated[int, Strict(), Field(ge=0, le=100)] | Annotated[float, Strict(), Field(ge=0, le=100, allow_inf_nan=False)]
)


def check_metadata(metadata: dict[str, Any] | None) -> None:
    """Refuse an object that is too large to be shown in lists.

    Raises:
        InvalidCall: It is.
    """
    size = len(json.dumps(metadata))
    if size > MAX_METADATA_BYTES:
        raise InvalidCall(f"metadata: {size:,} bytes as JSON, but at most {MAX_METADATA_BYTES:,} are possible")


class Arguments(BaseModel):
    """An object among the arguments; keys that it does not have are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Outcome(Arguments):
    """What came of a task."""

    summary: Text
    achievements: Texts = None
    limitations: Texts = None
    next_steps: Texts = None
    manual_review_needed: Flag | None = None


class TaskMetadata(Arguments):
    """What a task has done besides."""

    packages_added: Texts = None
    tests_status: TestsStatus | None = None


class Filter(Arguments):
    """Which rows of a workflow are asked for."""

    phase: PhaseNumber | None = None
    agent: Name | None = None
    since: Annotated[str, Strict(), Field(description="ISO 8601; without a zone it is UTC")] | None = None

    @property
    def since_milliseconds(self) -> int | None:
        """The time after which rows are wanted.

        Raises:
            InvalidCall: It is not a time.
        """
        if self.since is None:
            return None
        try:
            time = datetime.fromisoformat(self.since)
            return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            raise InvalidCall(
                f"filter.since: {self.since[:60]!r} is not a time in ISO 8601",
                hint="Write it as 2026-01-31T12:00:00Z.",
            ) from None

    @property
    def applied(self) -> dict[str, Any] | None:
        """What the answer says of the filter; None if nothing is filtered."""
        values = self.model_dump()
        return values if any(value is not None for value in values.values()) else None
