"""The instructions of the server, which a client gives to its model."""

from __future__ import annotations

from collections.abc import Iterable

from deepwork.ports.records import ToolSet

# Claude Code cuts instructions at 2,048 characters.
MAX_CHARACTERS = 2000


def join_instructions(sets: Iterable[ToolSet]) -> str:
    """Join the texts of all sets, the core's first. A text that no longer fits is left out as a whole."""
    joined = ""
    for tool_set in sorted(sets, key=lambda tool_set: (tool_set.name != "core", tool_set.name)):
        text = tool_set.instructions.strip()
        if text and len(joined) + len(text) + 2 <= MAX_CHARACTERS:
            joined = f"{joined}\n\n{text}" if joined else text
    return joined
