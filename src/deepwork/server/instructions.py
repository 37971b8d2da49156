"""What a client's model reads about the server as a whole."""

from __future__ import annotations

from collections.abc import Iterable

from deepwork.ports.records import ToolSet

# Claude Code cuts instructions at 2,048 characters.
MAX_CHARACTERS = 2000


def join_instructions(sets: Iterable[ToolSet]) -> str:
    """Join the texts of all sets, the core's first, leaving out whole texts that no longer fit."""
    joined = ""
    for tool_set in sorted(sets, key=lambda one: (one.name != "core", one.name)):
        text = tool_set.instructions.strip()
        if text and len(joined) + len(text) + 2 <= MAX_CHARACTERS:
            joined = f"{joined}\n\n{text}" if joined else text
    return joined
