"""What has happened, in words: for the event log, and for the history of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WORDS = {
    "core": {
        "session:started": "Session started",
        "session:step_begun": "Step begun",
        "session:review_handed_back": "Review handed to the agent",
        "session:attempt": "Attempt {number} reported",
        "session:verdict": "Review failed",
        "session:infrastructure": "Review without a verdict",
        "session:review_skipped": "Review skipped",
        "session:attempt_given_back": "Attempt not counted",
        "session:override_asked": "Override asked for",
        "session:override": "Step passed by override",
        "session:gate_off": "Step passed without its reviews",
        "session:self_review": "Step passed by self-review",
        "session:step_completed": "Step completed",
        "session:completed": "Session completed",
        "session:aborted": "Session aborted",
        "session:reopened": "Step begun again",
        "session:note": "Note to the agent",
        "session:waiting": "Agent has to wait",
        "session:paused": "Session paused",
        "session:unpaused": "Session goes on",
        "session:agent_gone": "Agent gone",
        "session:person_asked": "Person asked for a review",
        "session:comment_answered": "Comment answered by the agent",
        "session:comment_resolved": "Comment settled",
    },
    "orchestration": {
        "workflow:created": "Plan created",
        "workflow:updated": "Plan {status}",
        "workflow:paused": "Plan paused",
        "workflow:unpaused": "Plan goes on",
        "task:updated": "Task {status}",
        "task:claimed": "Task claimed",
        "task:released": "Task released",
        "task:reserved": "Task reserved for one agent",
        "task:lost": "Claim lost",
        "checkpoint:added": "Checkpoint added",
        "agent:registered": "Agent registered",
        "agent:updated": "Agent {status}",
        "agent:offline": "Agent offline",
        "message:sent": "Message sent",
        "workspace:created": "Workspace created",
        "workspace:updated": "Workspace {status}",
        "template:created": "Template created",
    },
    "tracking": {
        "workflow:created": "Work begun",
        "workflow:updated": "Work {workflow_status}",
        "phase:created": "Phase begun",
        "phase:updated": "Phase {status}",
        "task:created": "Task begun",
        "task:updated": "Task {status}",
        "decision:created": "Decision made",
        "issue:created": "Issue found",
        "issue:updated": "Issue resolved",
        "milestone:created": "Milestone reached",
    },
}
# Statuses that make no sentence of their own.
_STATUSES = {"success": "succeeded", "partial success": "partly succeeded", "planning": "being planned"}


def event_words(source: str, event: str, data: Mapping[str, Any]) -> str:
    """Return what has happened in a few words; an event of a plugin that is not known is its name."""
    words = WORDS.get(source, {}).get(event)
    if words is None:
        return event.replace(":", " ").replace("_", " ").capitalize()
    if event == "session:verdict" and data.get("passed") is True:
        return "Review passed"
    return words.format_map(_Values(data))


class _Values(dict[str, Any]):
    """The values of an event as words: `in_progress` and `IN_PROGRESS` are `in progress`."""

    def __getitem__(self, name: str) -> str:
        word = str(self.get(name, "changed")).replace("_", " ").lower()
        return _STATUSES.get(word, word)
