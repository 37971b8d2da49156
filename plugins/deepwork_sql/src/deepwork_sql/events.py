"""Events as readers of the feed see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The source of the events of sessions.
CORE = "core"


@dataclass(frozen=True)
class Viewer:
    """Who looks at events. Sessions are private to their principal, and each belongs to one project.

    Attributes:
        machine: The machine of the project.
        project: Its folder.
        principal: Who looks.
    """

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


def as_mapping(event: Event) -> dict[str, Any]:
    """Give an event as JSON has it."""
    return {
        "id": event.id,
        "source": event.source,
        "event": event.event,
        "workflow_id": event.workflow_id,
        "at": event.at,
        "principal": event.principal,
        "data": event.data,
    }
