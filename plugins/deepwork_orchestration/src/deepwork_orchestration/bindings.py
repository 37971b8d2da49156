"""What a connection remembers of its claims, so that its calls need not name a fence."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from deepwork.api import ToolCall


@dataclass(frozen=True)
class Binding:
    """A claim made over a connection.

    Attributes:
        fence: The fence of the claim; None once it has ended.
        agent_ids: All agents that have claimed the task over the connection. With two of them, subagents that share a
            server, the owner of a call is ambiguous.
    """

    fence: int | None
    agent_ids: frozenset[str]


class ConnectionBindings:
    """The claims of one connection, by task."""

    def __init__(self) -> None:
        self._bindings: dict[str, Binding] = {}

    def fence(self, task_id: str, agent_id: str | None = None) -> int | None:
        """Return the fence that a call about a task carries; None if the call names another agent."""
        binding = self._bindings.get(task_id)
        if binding is None or len(binding.agent_ids) > 1:
            return None
        return binding.fence if agent_id is None or agent_id in binding.agent_ids else None

    def bind(self, task_id: str, agent_id: str, fence: int) -> None:
        """Remember a claim; a repeated reply about an earlier one changes nothing."""
        previous = self._bindings.get(task_id, Binding(None, frozenset()))
        newest = max(fence, previous.fence or 0)
        self._bindings[task_id] = Binding(newest, previous.agent_ids | {agent_id})

    def end(self, task_id: str) -> None:
        """Forget the fence of a claim that has ended as it should."""
        previous = self._bindings.get(task_id)
        if previous is not None:
            self._bindings[task_id] = Binding(None, previous.agent_ids)


class Bindings:
    """The claims of all connections of a server, in memory."""

    def __init__(self) -> None:
        self._of_connection: WeakKeyDictionary[object, ConnectionBindings] = WeakKeyDictionary()

    def of(self, call: ToolCall) -> ConnectionBindings:
        """Return those of the call's connection."""
        return self._of_connection.setdefault(call.connection, ConnectionBindings())
