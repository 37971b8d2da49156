"""The agent that runs, and what it has told."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio

from deepwork.ports.agent import AgentTask, Failed, Limited
from deepwork.text import one_line


@dataclass
class Worker:
    """One start of an agent.

    Attributes:
        number: Its number in the run.
        name: The agent.
        scope: Cancelling it ends the agent by force.
        task: What the agent was told.
        step_id: The step that was open when its last call had ended.
        open_calls: The calls that it has announced and that have not ended.
        limit: The limit that it has met.
        failure: What has gone wrong.
        exit_code: How its program has ended.
        end: Why the runner has ended it.
        is_ending: Whether the runner ends it.
    """

    number: int
    name: str
    scope: anyio.CancelScope
    task: AgentTask
    step_id: str
    open_calls: set[str] = field(default_factory=set)
    limit: Limited | None = None
    failure: Failed | None = None
    exit_code: int | None = None
    end: str = ""
    is_ending: bool = False

    @property
    def how_ended(self) -> str:
        """How it has ended, in a line."""
        if self.end:
            return self.end
        if self.limit:
            return f"{self.limit.cause}: {one_line(self.limit.text)}".rstrip(": ")
        if self.failure:
            return f"{self.failure.kind} failure: {one_line(self.failure.text)}"
        if self.is_ending:
            return "interrupted"
        return f"code {self.exit_code}" if self.exit_code else "done"
