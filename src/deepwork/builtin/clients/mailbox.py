"""The messages to the agent of a client session, from the plugins that have some."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from deepwork.api import AgentMail, AgentMessage, Project
    from deepwork.ports.agent_call import AgentCall

ResultT = TypeVar("ResultT")


class Mailbox:
    """The messages of one project. Plugins are loaded at the first use."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._messages: list[tuple[AgentMail, list[AgentMessage]]] = []

    def unread(self, agent_id: str) -> list[AgentMessage]:
        """Return the unread messages to an agent; those of a failing plugin are left out."""
        with suppress(Exception):
            for mail in self._project.agent_mail():
                with suppress(Exception):
                    messages = self._run(partial(mail.unread, agent_id))
                    self._messages.append((mail, list(messages)))
        return [message for _, messages in self._messages for message in messages]

    def mark_delivered(self, message_ids: Collection[str]) -> None:
        """Mark messages that were handed over."""
        for mail, messages in self._messages:
            own = [message.id for message in messages if message.id in message_ids]
            if own:
                self._run(partial(mail.mark_delivered, own))

    def waits_for_person(self, agent_id: str) -> bool:
        """True if a plugin knows that an agent can do nothing before a person acts."""
        with suppress(Exception):
            for mail in self._project.agent_mail():
                with suppress(Exception):
                    ask = mail.waits_for_person
                    if ask and self._run(partial(ask, agent_id)):
                        return True
        return False

    def agent_of(self, call: AgentCall) -> str | None:
        """Return the agent that a client session is from this call on, if a plugin says so."""
        with suppress(Exception):
            for mail in self._project.agent_mail():
                with suppress(Exception):
                    agent_id = mail.agent_of(call) if mail.agent_of else None
                    if agent_id is not None:
                        return agent_id
        return None

    def _run(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Run a method of a plugin, and close what it has opened."""
        import anyio

        async def run() -> ResultT:
            try:
                return await work()
            finally:
                await self._project.close()

        return anyio.run(run)
