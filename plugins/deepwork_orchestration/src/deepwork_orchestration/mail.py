"""The messages that `deepwork hook` hands over in the client session that an agent is."""

from __future__ import annotations

from collections.abc import Sequence

from deepwork.api import AgentMail, AgentMessage, PluginContext, ToolCall, one_line, visible_lines
from deepwork_orchestration.act import Act
from deepwork_orchestration.desk import open_desk
from deepwork_orchestration.inbox import waits_for_person
from deepwork_orchestration.models import Message
from deepwork_orchestration.names import body_text, shown_sender

MAX_BODY = 1500
MAX_SUBJECT = 200
LOADED = 100


def agent_mail(context: PluginContext) -> AgentMail:
    """Make the record for a project."""

    async def unread(agent_id: str) -> list[AgentMessage]:
        return await open_desk(context).read(
            ToolCall(), lambda act: [_shown(act, message) for message in _unread(act, agent_id)]
        )

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
    )


def _unread(act: Act, agent_id: str) -> list[Message]:
    """Return the most urgent messages first, then the oldest; those to people wait in the inbox."""
    if any(person.id == agent_id for person in act.records.people()):
        return []
    messages, _ = act.records.waiting_messages([agent_id], LOADED, MAX_BODY + 1)
    return messages


def _shown(act: Act, message: Message) -> AgentMessage:
    """Return a message as the hook shows it: only what this plugin itself knows stands outside of the quotation."""
    ids = ("workflow", message.workflow_id), ("task", message.task_id), ("reply to", message.reply_to_id)
    body = visible_lines(body_text(message.body))
    cut = f"; cut here, message_get(id={message.id!r}) gives all" if len(body) > MAX_BODY else ""
    about = "".join(f", {name} {value}" for name, value in ids if value)
    return AgentMessage(
        id=message.id,
        about=f"({message.message_type}, {message.priority}) from {shown_sender(act.records, message)}{about}{cut}:",
        text="\n".join(filter(None, [one_line(message.subject or "", MAX_SUBJECT), body[:MAX_BODY]])),
    )
