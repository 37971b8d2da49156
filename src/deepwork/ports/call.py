"""What a tool may know about the call that it serves."""

from __future__ import annotations

from dataclasses import dataclass, field


class Connection:
    """Identity of one client connection. The stack of workflows belongs to it."""


@dataclass(frozen=True)
class ToolCall:
    """One call of one tool.

    A tool function that takes a parameter of this type gets it from the host; agents do not see it.

    Attributes:
        connection: On stdio and in memory one for the whole server; over HTTP one for each session
            that the transport itself issued.
        principal: Who calls: `local`, or the name that a token stands for.
    """

    connection: Connection = field(default_factory=Connection)
    principal: str = "local"
