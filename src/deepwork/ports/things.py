"""Things that pages show, by names such as `session:ID`: what events and items of the inbox are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

# The page of each kind of thing, which is also its folder in the API of the dashboard.
PAGES = {
    "session": "sessions",
    "plan": "plans",
    "task": "tasks",
    "work": "work",
    "agent": "agents",
    "inbox": "inbox",
}

# What the workflow of an event is, by the source of the event.
_OWNERS = {"core": "session", "orchestration": "plan", "tracking": "work"}
# The events of these kinds have the id of their thing in `id`, and other ids in these fields, by their source.
_SUBJECTS = {"orchestration": ("task", "agent")}
_FIELDS = {
    "orchestration": {
        "task_id": "task",
        "task_ids": "task",
        "current_task_id": "task",
        "agent_id": "agent",
        "assigned_agent_id": "agent",
        "sender_id": "agent",
        "recipient_id": "agent",
    },
}
# References of the inbox whose kind is not the thing's, and what has the id of the thing.
_REFERENCES = {"tracked-workflow": ("work", "id"), "message": ("agent", "agent_id")}


def thing_of(reference: Mapping[str, str]) -> str | None:
    """Return what an item of the inbox is about; None if no page shows it."""
    kind = reference.get("kind", "")
    kind, field = _REFERENCES.get(kind, (kind, "id"))
    return f"{kind}:{reference[field]}" if kind in PAGES and field in reference else None


def owner_of(source: str, workflow_id: str | None) -> str | None:
    """Return what an event belongs to; None if no page shows it."""
    return f"{_OWNERS[source]}:{workflow_id}" if source in _OWNERS and workflow_id else None


def things_of(source: str, event: str, workflow_id: str | None, data: Mapping[str, Any]) -> list[str]:
    """Return what an event is about: the thing that is most worth opening, its owner, and others that it names."""
    owner = owner_of(source, workflow_id)
    subject = event.partition(":")[0]
    own = [f"{subject}:{data['id']}"] if subject in _SUBJECTS.get(source, ()) and _is_id(data.get("id")) else []
    named = [f"{kind}:{thing_id}" for kind, thing_id in _named(_FIELDS.get(source, {}), data)]
    tasks = [thing for thing in named if thing.startswith("task:")]
    return list(dict.fromkeys([*own, *tasks, *([owner] if owner else []), *named]))


def _named(fields: Mapping[str, str], data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, kind in fields.items():
        value = data.get(field)
        for thing_id in value if isinstance(value, list) else [value]:
            if _is_id(thing_id):
                yield kind, thing_id


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""
