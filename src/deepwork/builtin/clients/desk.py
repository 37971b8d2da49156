"""What an answer to a hook needs of a project: for a command that ends at once, and for a server that runs on."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from deepwork.api import Project
    from deepwork.builtin.clients.news import Entry
    from deepwork.models.standing import Head
    from deepwork.ports.call import ToolCall

# A text that a command has printed is delivered with the next call to any server.
PRINTED = "printed"
ACTIVE, ABORTED = "active", "aborted"
MAX_HISTORIES = 200
# How long a server waits for a plugin, such as one that opens its database.
PLUGIN_SECONDS = 0.8

ResultT = TypeVar("ResultT")
# When a session was changed last, and its history then, by its id.
Histories = dict[str, tuple[str, Sequence["Entry"]]]


@dataclass
class Desk:
    """For a command. Nothing in it waits: so what uses it can be run without an event loop, which takes long to import.

    Only what code of plugins is asked gets a loop of its own.

    Attributes:
        project: Access to it.
        root: The folder of the project.
        server: The process that hands texts over, which no other has.
        principal: Whose client calls.
    """

    project: Project
    root: str
    server: str = field(default_factory=partial(secrets.token_hex, 6))
    principal: str = "local"

    async def heads(self, session_ids: Sequence[str], status: str = ACTIVE) -> list[Head]:
        """Return those of the sessions that have this status, in this order."""
        heads = [self.project.standings().named(session_id, status) for session_id in session_ids]
        return [head for head in heads if head]

    async def open(self) -> list[Head]:
        """Return all open sessions, the last changed first."""
        return self.project.standings().open()

    async def history(self, head: Head) -> Sequence[Entry]:
        """Return what has happened in a session."""
        return self.project.standings().history(head.session_id, head.status)

    async def resume(self, session_id: str) -> str:
        """Return what an agent needs to go on with a session."""
        return self.project.resume_text(session_id)

    async def ask(self, question: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Ask code of a plugin."""
        import anyio

        async def asked() -> ResultT:
            try:
                return await question()
            finally:
                await self.project.close()

        return anyio.run(asked)

    async def blocking(self, work: Callable[[], ResultT]) -> ResultT:
        """Do what blocks."""
        return work()


@dataclass
class ServerDesk(Desk):
    """For one call of the hook of a server. Histories that have not changed are not read again."""

    call: ToolCall = field(kw_only=True)
    histories: Histories = field(kw_only=True)

    async def heads(self, session_ids: Sequence[str], status: str = ACTIVE) -> list[Head]:
        store = await self.project.sessions().store()
        summaries = await store.peek([*session_ids]) if session_ids else []
        heads = [
            await self._head(item) for item in summaries if not isinstance(item, Exception) and item.status == status
        ]
        return [head for head in heads if head.principal == self.principal]

    async def open(self) -> list[Head]:
        if not self.call.may_list:
            return []
        summaries = await self.project.sessions().summaries(self.call)
        return [await self._head(summary) for summary in summaries if summary.is_active]

    async def history(self, head: Head) -> Sequence[Entry]:
        known_at, entries = self.histories.get(head.session_id) or ("", ())
        if known_at != head.updated_at:
            session = await (await self.project.sessions().store()).load(head.session_id)
            entries = [entry.model_dump(mode="json") for entry in session.history] if session else []
            while len(self.histories) >= MAX_HISTORIES:
                self.histories.pop(next(iter(self.histories)))
            self.histories[head.session_id] = head.updated_at, entries
        return entries

    async def resume(self, session_id: str) -> str:
        session = await (await self.project.sessions().store()).load(session_id)
        return await self.blocking(lambda: self.project.resume_text_of(session)) if session else ""

    async def ask(self, question: Callable[[], Awaitable[ResultT]]) -> ResultT:
        import anyio

        with anyio.fail_after(PLUGIN_SECONDS):  # what does not depend on it is handed over in time
            return await question()

    async def blocking(self, work: Callable[[], ResultT]) -> ResultT:
        from anyio import to_thread

        return await to_thread.run_sync(work)

    async def _head(self, summary: Any) -> Head:
        from deepwork.api import standing_in
        from deepwork.models.standing import Head

        standing = await standing_in(await self.project.sessions().store(), summary)
        return Head(**summary.model_dump(mode="json", exclude={"standing"}), standing=standing)
