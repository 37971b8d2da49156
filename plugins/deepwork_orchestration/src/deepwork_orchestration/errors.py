"""The errors of the tools: an agent reads each as JSON `{code, message, recoverable, suggestion}`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from deepwork.errors import ToolError

# Whether the same agent can repair the call: the second column of the table in docs/reference/orchestration.md.
RECOVERABLE = {
    "AGENT_NOT_FOUND": False,
    "CLAIM_LOST": False,
    "DEPENDENCY_CYCLE": True,
    "DUPLICATE_TASK_NAME": True,
    "DUPLICATE_TEMPLATE": True,
    "INVALID_INPUT": True,
    "INVALID_STATE": False,
    "INVALID_TRANSITION": False,
    "MESSAGE_NOT_FOUND": False,
    "MISSING_ERROR": True,
    "MISSING_MERGE_COMMIT": True,
    "MISSING_OUTCOME": True,
    "MISSING_PATH": True,
    "MISSING_REPO_PATH": True,
    "MISSING_VARIABLES": True,
    "NOT_ASSIGNED": False,
    "NOT_CLAIMED": False,
    "PLAN_PAUSED": False,
    "RECIPIENT_NOT_FOUND": False,
    "REQUEST_CONFLICT": False,
    "SELF_DEPENDENCY": True,
    "SENDER_NOT_FOUND": False,
    "TASK_BLOCKED": True,
    "TASK_NOT_FOUND": False,
    "TEMPLATE_NOT_FOUND": False,
    "UNKNOWN_DEPENDENCY": True,
    "WORKFLOW_MISMATCH": False,
    "WORKFLOW_NOT_FOUND": False,
    "WORKSPACE_NOT_FOUND": False,
}


class OrchestrationError(ToolError):
    """A call that cannot be carried out.

    Args:
        code: One of `RECOVERABLE`.
        message: What is wrong, the offending value, and what would be right.
        suggestion: What to do next.
    """

    def __init__(self, code: str, message: str, suggestion: str | None = None) -> None:
        super().__init__(message, hint=suggestion)
        self.code = code
        self.recoverable = RECOVERABLE[code]

    def __str__(self) -> str:
        """The JSON that the agent reads."""
        fields = {"code": self.code, "message": self.message, "recoverable": self.recoverable}
        return json.dumps(fields | ({"suggestion": self.hint} if self.hint else {}), ensure_ascii=False)


MAX_NAMED = 20


def some(names: Sequence[str]) -> str:
    """Write a list into a sentence; of a long one its beginning, and how many more there are."""
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


# The tool that lists what can be named where something is unknown.
_LISTS = {
    "agent": "agent_list shows the agents.",
    "message": "message_list shows an agent's messages.",
    "recipient": "agent_list shows the agents.",
    "sender": "agent_register gives an agent its id.",
    "task": "workflow_get with include_tasks shows the tasks of a workflow.",
    "template": "template_list shows the templates.",
    "workflow": "workflow_list shows the workflows.",
    "workspace": "workspace_list shows the workspaces of a workflow.",
}


def not_found(kind: str, value: str) -> OrchestrationError:
    """Make the error for an id that nothing has."""
    return OrchestrationError(f"{kind.upper()}_NOT_FOUND", f"there is no {kind} {value[:100]!r}", _LISTS[kind])


def invalid_input(field: str, problem: str, suggestion: str | None = None) -> OrchestrationError:
    """Make the error for a value that has the right type, but cannot be used."""
    return OrchestrationError("INVALID_INPUT", f"{field} {problem}", suggestion)
