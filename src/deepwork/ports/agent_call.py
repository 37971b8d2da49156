"""A call of a tool, as the hook of a client tells of it. Hooks run often, so nothing large is imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class AgentCall:
    """A call of a tool of ours, as the hook of a client tells of it.

    Attributes:
        tool: The client's name of the tool: `mcp__deepwork__agent_register`.
        arguments: What it was called with.
        replies: Every JSON object in its result.
        agent_id: The agent that the client session is so far; None if that is not known.
    """

    tool: str
    arguments: Mapping[str, Any]
    replies: Sequence[Mapping[str, Any]]
    agent_id: str | None
