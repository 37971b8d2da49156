"""The words of every status, and which may follow which."""

from __future__ import annotations

from typing import Literal, get_args

from deepwork_orchestration.errors import OrchestrationError

WorkflowStatus = Literal["planning", "ready", "in_progress", "paused", "completed", "failed", "abandoned"]
TaskStatus = Literal["pending", "blocked", "planning", "in_progress", "paused", "completed", "failed", "skipped"]
WorkspaceStatus = Literal["active", "merged", "abandoned"]
AgentStatus = Literal["online", "offline", "busy"]

TASK_STATUSES: tuple[str, ...] = get_args(TaskStatus)

WORKFLOW_TRANSITIONS: dict[str, tuple[str, ...]] = {
    "planning": ("abandoned",),  # `ready` is the work of workflow_set_plan; by hand there would be no way to a plan
    "ready": ("in_progress", "abandoned"),
    "in_progress": ("paused", "completed", "failed", "abandoned"),
    "paused": ("in_progress", "abandoned"),
    "failed": ("in_progress",),
    "completed": (),
    "abandoned": (),
}
TASK_TRANSITIONS: dict[str, tuple[str, ...]] = {
    "pending": ("planning",),
    "blocked": ("planning",),
    "planning": ("in_progress", "completed"),
    "in_progress": ("completed", "paused", "failed"),
    "paused": ("in_progress",),
    "failed": ("pending", "skipped"),
    "completed": (),
    "skipped": (),
}
WORKSPACE_TRANSITIONS: dict[str, tuple[str, ...]] = {
    "active": ("merged", "abandoned"),
    "merged": (),
    "abandoned": ("active",),
}

# The capability that a task for people needs. An agent may say so of itself in its metadata, which counts for nothing.
HUMAN = "human"
# Before the principal of a person. No token has such a name, so no call of a tool has such a principal.
PERSON = "person:"

# A task in one of these satisfies its dependents, and never changes again.
DONE = ("completed", "skipped")
# A claim ends when its task gets one of these.
FINISHED = ("completed", "failed", "skipped")
# A task in one of these has been begun: it is pending again when its claim ends early.
BEGUN = ("planning", "in_progress", "paused")
# A workflow in one of these hands out no tasks.
CLOSED = ("paused", "completed", "abandoned")


def check_transition(kind: str, transitions: dict[str, tuple[str, ...]], current: str, target: str) -> None:
    """Refuse a status that may not follow the current one.

    Raises:
        OrchestrationError: INVALID_TRANSITION; it names what may follow.
    """
    allowed = transitions[current]
    if target in allowed:
        return
    suggestion = f"From {current!r} it can become: {', '.join(allowed)}." if allowed else f"{current!r} is final."
    if (kind, current, target) == ("workflow", "planning", "ready"):
        suggestion = "Call workflow_set_plan: it makes the workflow ready."
    raise OrchestrationError("INVALID_TRANSITION", f"a {kind} that is {current!r} cannot become {target!r}", suggestion)
