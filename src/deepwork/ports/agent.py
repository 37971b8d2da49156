"""Programs that work on a session by themselves, and what they tell while they do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

import anyio

# The variables of each process of an agent that is started for a session: which session, and the agent's name.
SESSION_VARIABLE, NAME_VARIABLE = "DEEPWORK_WORKER", "DEEPWORK_AGENT"


class LimitCause(StrEnum):
    """Why an agent has to wait; each of them passes by itself."""

    USAGE = "usage limit"
    OVERLOAD = "overload"
    NETWORK = "network"


class FailureKind(StrEnum):
    """Why an agent could not go on."""

    LOGIN = "login"
    CONTEXT = "context"
    OTHER = "other"


@dataclass(frozen=True)
class Said:
    """The agent has said something."""

    text: str


@dataclass(frozen=True)
class Called:
    """The agent has announced a call of a tool, or has its result.

    Attributes:
        tool: The tool.
        call_id: What the announcement and the result of one call have in common.
        is_done: Whether the result is there.
    """

    tool: str
    call_id: str
    is_done: bool = False


@dataclass(frozen=True)
class Spent:
    """What the agent's program says that it has used.

    Attributes:
        record_id: The program's own id of what it reports. A later record of the same id replaces the earlier one.
        input_tokens: What was read, with all that came from a cache or went into one.
        output_tokens: What was written.
        cost_usd: Dollars, only where the program itself says dollars.
    """

    record_id: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True)
class Limited:
    """The agent was refused by its vendor, or cannot reach it, and may try again later.

    Attributes:
        until: When; None if the program names no time.
        cause: Why.
        text: The program's own words.
    """

    until: datetime | None = None
    cause: LimitCause = LimitCause.USAGE
    text: str = ""


@dataclass(frozen=True)
class Failed:
    """The agent cannot go on, and waiting does not help. With a full context, another agent of its kind can go on."""

    text: str
    kind: FailureKind = FailureKind.OTHER


@dataclass(frozen=True)
class Ended:
    """The agent's program has ended. It is the last event, and always comes."""

    exit_code: int


AgentEvent = Said | Called | Spent | Limited | Failed | Ended


def _keep_nothing(_line: bytes) -> None:
    """Keep no transcript."""


@dataclass(frozen=True, kw_only=True)
class AgentTask:
    """The work of one agent.

    Attributes:
        session_id: The session that it works on.
        prompt: What it is told; it names the session and the first call.
        project_root: Where it runs.
        server: The command that starts the MCP server `deepwork` on stdio.
        hook: The command that answers a hook, without the event: `[*hook, "Stop", "--client", "claude"]`.
        environment: All variables of the user; its program sees only the needed ones.
        marks: Variables that its program, its server and all that they start must have: they lead to the processes that
            a dead agent has left.
        allow: What the user allows besides reading and editing files of the project: `shell`, `network`, `all`.
        budget_usd: What it may spend; None without a limit.
        keep: Takes each line that its program prints, for the transcript.
        stop: Set when the agent is to come to an end; ten seconds later it is ended by force.
    """

    session_id: str
    prompt: str
    project_root: Path
    server: tuple[str, ...]
    hook: tuple[str, ...]
    environment: Mapping[str, str]
    marks: Mapping[str, str] = field(default_factory=dict)
    allow: frozenset[str] = frozenset()
    budget_usd: float | None = None
    keep: Callable[[bytes], None] = _keep_nothing
    stop: anyio.Event = field(default_factory=anyio.Event)

    def allows(self, what: str) -> bool:
        """True if the user allows this."""
        return bool(self.allow & {what, "all"})

    @property
    def server_environment(self) -> dict[str, str]:
        """The variables that the server needs: its own, where the user's files are, and the marks."""
        own = ("DEEPWORK_", "XDG_")
        kept = {name: value for name, value in self.environment.items() if name.startswith(own)}
        return {**kept, **self.marks}


class Agent(ABC):
    """One kind of agent. `AgentSpec.create` makes it once for a run, which starts it again and again."""

    @abstractmethod
    async def available(self) -> str | None:
        """Return why it cannot be started here, such as that its program is missing; None if it can.

        It asks no vendor: whether there is a login shows when it is started.
        """

    @abstractmethod
    def start(self, task: AgentTask) -> AsyncGenerator[AgentEvent, None]:
        """Work on a session, and tell what happens; an async generator. Closing it ends the agent and all it started.

        What it cannot do is an event, `Limited` or `Failed`, never an exception. The last event is `Ended`.
        """


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """An agent that can be chosen by name.

    Attributes:
        name: The name, as in `deepwork run --with NAME`.
        create: Makes the agent. It takes nothing: what the agent needs is bound to it, as by a lambda.
        says_dollars: Whether its program says what it costs.
        has_hooks: Whether the hooks of `deepwork hook` run in it.
    """

    name: str
    create: Callable[[], Agent]
    says_dollars: bool = False
    has_hooks: bool = False
