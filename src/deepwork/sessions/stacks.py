"""What a connection remembers of its sessions; their state is always read from the store."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from weakref import ref

from deepwork.models.replies import StackEntry
from deepwork.ports.call import Connection

# Of so many sessions the server remembers which connection works on them.
MAX_SESSIONS = 10_000


@dataclass
class ConnectionState:
    """The sessions of one connection.

    Attributes:
        stack: Session ids, the newest last. It starts empty, and is filled by starting and by adopting.
        entries: The stack as it was last read, for the log.
        last_ended: The session that ended last on this connection.
        remarks: What is to be told once: sessions that were damaged, or ended elsewhere.
        damaged: Errors of damaged sessions that no call was refused for yet.
        unbriefed: Adopted sessions whose agent has not been told where it is.
        told_notes: The session and the time of each note that has been told here.
    """

    stack: list[str] = field(default_factory=list)
    entries: list[StackEntry] = field(default_factory=list)
    last_ended: str | None = None
    remarks: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    unbriefed: set[str] = field(default_factory=set)
    told_notes: set[tuple[str, str]] = field(default_factory=set)

    def push(self, session_ids: list[str]) -> None:
        """Put sessions on top; what is already there stays where it is."""
        self.stack.extend(session_id for session_id in session_ids if session_id not in self.stack)

    def drop(self, session_ids: set[str]) -> None:
        """Take sessions off the stack, wherever they stand."""
        # In place and by filter: a call that runs beside this one may hold or extend the same list.
        self.stack[:] = [session_id for session_id in self.stack if session_id not in session_ids]

    def end(self, session_id: str) -> None:
        """Take a session that has ended off the stack."""
        self.drop({session_id})
        self.last_ended = session_id

    def take_remarks(self) -> list[str]:
        """Return the pending remarks, each only once."""
        remarks = [*self.damaged, *self.remarks]
        self.damaged.clear()
        self.remarks.clear()
        return remarks


class Workers:
    """Which connection has worked on each session last."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, ref[Connection]] = OrderedDict()

    def take_up(self, session_id: str, connection: Connection) -> bool:
        """Note that a connection works on a session, and say whether it has taken it over.

        It has if another connection of this server works on it, or none has yet. Where every request is a connection of
        its own, the last one is gone by now, and nothing was taken over.
        """
        last = self._last.pop(session_id, None)
        self._last[session_id] = ref(connection)
        if len(self._last) > MAX_SESSIONS:
            self._last.popitem(last=False)
        return last is None or last() not in (None, connection)
