"""The instructions of the server, which a client gives to its model."""

from __future__ import annotations

from collections.abc import Iterable

from deepwork.ports.records import ToolSet

STRICT = (
    "The quality gate is strict: a step with reviews passes only by a reviewer's verdict, or if a person allows it in "
    "a terminal or when asked; quality_review_override_reason is no way past it."
)
NO_REVIEWER = "No workflow can be started now, for no reviewer can work; start_workflow says what the user has to fix."

# Claude Code cuts instructions at 2,048 characters.
MAX_CHARACTERS = 2000


def join_instructions(sets: Iterable[ToolSet], first: str = "") -> str:
    """Join the texts of all sets, the core's first. A text that no longer fits is left out as a whole."""
    joined = first
    for tool_set in sorted(sets, key=lambda tool_set: (tool_set.name != "core", tool_set.name)):
        text = tool_set.instructions.strip()
        if text and len(joined) + len(text) + 2 <= MAX_CHARACTERS:
            joined = f"{joined}\n\n{text}" if joined else text
    return joined
