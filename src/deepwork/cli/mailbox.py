"""The messages to the agent of a client session, from the plugins that have some."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from deepwork.ports.records import AgentMail, AgentMessage
    from deepwork.project.project import Project

ResultT = TypeVar("ResultT")


class Mailbox:
    """The messages of one project. Plugins are loaded at the first use."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._messages: list[tuple[AgentMail, list[AgentMessage]]] = []

    def unread(self, agent_id: str) -> list[AgentMessage]:
        """Give the unread messages to an agent; nothing of a plugin that fails."""
        with suppress(Exception):
            for provided in self._project.agent_mail.items:
                with suppress(Exception):
                    messages = self._run(partial(provided.item.unread, agent_id))
                    self._messages.append((provided.item, list(messages)))
        return [message for _, messages in self._messages for message in messages]

    def mark_delivered(self, message_ids: Collection[str]) -> None:
        """Mark messages that were handed over."""
        for mail, messages in self._messages:
            own = [message.id for message in messages if message.id in message_ids]
            if own:
                self._run(partial(mail.mark_delivered, own))

    def waits_for_person(self, agent_id: str) -> bool:
        """Say whether an agent can do nothing before a person acts, as far as a plugin knows."""
        with suppress(Exception):
            for provided in self._project.agent_mail.items:
                with suppress(Exception):
                    ask = provided.item.waits_for_person
                    if ask and self._run(partial(ask, agent_id)):
                        return True
        return False

    @cached_property
    def _project(self) -> Project:
        from deepwork.project.project import Project

        return Project(self._root)

    def _run(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Run a method of a plugin, and close what it has opened."""
        import anyio

        async def run() -> ResultT:
            try:
                return await work()
            finally:
                await self._project.close()

        return anyio.run(run)
