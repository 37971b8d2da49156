"""The messages that `deepwork hook` hands over in the client session that an agent is."""

from __future__ import annotations

import json
from collections.abc import Sequence

from deepwork.api import AgentMail, AgentMessage, PluginContext, ToolCall, visible, visible_lines
from deepwork_orchestration.act import Act
from deepwork_orchestration.desk import open_desk
from deepwork_orchestration.inbox import waits_for_person
from deepwork_orchestration.models import Message
from deepwork_sql import database_files

MAX_BODY = 1500
LOADED = 100


def agent_mail(context: PluginContext) -> AgentMail:
    """Make the record for a project."""

    async def unread(agent_id: str) -> list[AgentMessage]:
        messages = await open_desk(context).read(ToolCall(), lambda act: _unread(act, agent_id))
        return [AgentMessage(id=message.id, text=_text(message)) for message in messages]

    async def mark_delivered(message_ids: Sequence[str]) -> None:
        def mark(act: Act) -> None:
            act.records.mark(message_ids, ["unread"], status="read", read_at=act.now)

        await open_desk(context).write(ToolCall(), mark)

    async def waits(agent_id: str) -> bool:
        return await open_desk(context).read(ToolCall(), lambda act: waits_for_person(act, agent_id))

    return AgentMail(
        name="orchestration",
        unread=unread,
        mark_delivered=mark_delivered,
        waits_for_person=waits,
        files=lambda: database_files(context),
    )


def _unread(act: Act, agent_id: str) -> list[Message]:
    """Return the most urgent messages first, then the oldest; those to people wait in the inbox."""
    if any(person.id == agent_id for person in act.records.people()):
        return []
    messages, _ = act.records.waiting_messages([agent_id], LOADED, MAX_BODY + 1)
    return messages


def _text(message: Message) -> str:
    sender = f"agent {message.sender_id}" if message.sender_id else "the system"
    about = "".join(f", {name} {value}" for name, value in _about(message) if value)
    body = message.body if isinstance(message.body, str) else json.dumps(message.body, ensure_ascii=False)
    rest = f"\n… message_get(id={message.id!r}) gives the rest." if len(body) > MAX_BODY else ""
    subject = f"{visible(message.subject[:200])}\n" if message.subject else ""
    head = f"{message.id} ({message.message_type}, {message.priority}) from {sender}{about}:"
    return f"{head}\n{subject}{visible_lines(body[:MAX_BODY])}{rest}"


def _about(message: Message) -> tuple[tuple[str, str | None], ...]:
    return ("workflow", message.workflow_id), ("task", message.task_id), ("reply to", message.reply_to_id)
