"""Events as readers of the feed see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from deepwork.api import things
from deepwork.errors import ArgumentError

# The source of the events of sessions.
CORE = "core"
# The largest number that a part of a cursor can have.
LAST = 2**63 - 1


class Cursor(NamedTuple):
    """A place in the feed."""

    xid: int
    seq: int

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """Read what `Event.id` says.

        Raises:
            ArgumentError: It is something else.
        """
        xid, _, seq = cursor.partition("-")
        if not (_is_number(xid) and _is_number(seq)):
            shown = f"{cursor[:40]}…" if len(cursor) > 40 else cursor
            raise ArgumentError(f"{shown!r} is not the id of an event", hint="Give the `id` of the last event seen.")
        return cls(int(xid), int(seq))

    def __str__(self) -> str:
        """Write it as `Event.id`."""
        return f"{self.xid}-{self.seq}"


@dataclass(frozen=True)
class Viewer:
    """Who looks at events, in a project. Sessions are private to their principal, and each belongs to one project."""

    machine: str
    project: str
    principal: str


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        id: The cursor of the feed: a text to hand back, not a number to count with.
        source: The plugin that told it; names may repeat between sources.
        event: What happened.
        workflow_id: To what it belongs.
        at: When, in milliseconds by the clock of the database.
        principal: Who caused it.
        data: What else is known.
    """

    id: str
    source: str
    event: str
    workflow_id: str | None
    at: int
    principal: str | None
    data: Mapping[str, Any]

    @property
    def things(self) -> list[str]:
        """The things that it is about, such as `task:ID`: first what is most worth opening."""
        return things.things_of(self.source, self.event, self.workflow_id, self.data)


@dataclass(frozen=True)
class EventFilter:
    """Which events are asked for; what is None leaves out none.

    Attributes:
        source: Only those of this plugin.
        event: Only those whose name begins so.
        workflow_id: Only those of this workflow.
        viewer: Without the parts of sessions that they may not see.
    """

    source: str | None = None
    event: str | None = None
    workflow_id: str | None = None
    viewer: Viewer | None = None


EVERY_EVENT = EventFilter()


def as_mapping(event: Event) -> dict[str, Any]:
    """Return an event as JSON has it."""
    return {
        "id": event.id,
        "source": event.source,
        "event": event.event,
        "workflow_id": event.workflow_id,
        "at": event.at,
        "principal": event.principal,
        "thing": next(iter(event.things), None),
        "data": event.data,
    }


def _is_number(part: str) -> bool:
    # The length comes first: Python refuses to read a number of thousands of digits.
    return len(part) <= len(str(LAST)) and part.isascii() and part.isdigit() and int(part) <= LAST
