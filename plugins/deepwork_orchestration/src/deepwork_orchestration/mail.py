"""The messages, pauses and free tasks that hooks tell in the client session that an agent is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from deepwork.api import AgentMail, AgentMessage, PluginContext, ToolCall
from deepwork.models.standing import paused_text
from deepwork.ports.agent_call import AgentCall
from deepwork.text import one_line, visible_lines
from deepwork_orchestration import claims, messages, pauses
from deepwork_orchestration.models import Agent, Message
from deepwork_orchestration.names import body_text
from deepwork_orchestration.opening import open_database
from deepwork_orchestration.people import waits_for_person
from deepwork_orchestration.transaction import PlanTransaction

MAX_BODY = 2000 - 201  # of the 2,000 characters that hooks quote, the subject and a line end have 201
MAX_SUBJECT = 200
MAX_NAME = 100
LOADED = 100
# An agent takes one task; `task_get_available` lists all.
MAX_UNBLOCKED = 3


def agent_mail(context: PluginContext) -> AgentMail:
    """Make the record for a project."""

    async def unread(agent_id: str) -> list[AgentMessage]:
        return await open_database(context).read(ToolCall(), lambda transaction: [*_waiting(transaction, agent_id)])

    async def mark_delivered(message_ids: Sequence[str]) -> None:
        await open_database(context).write(ToolCall(), lambda transaction: messages.mark_read(transaction, message_ids))

    async def waits(agent_id: str) -> bool:
        return await open_database(context).read(
            ToolCall(), lambda transaction: waits_for_person(transaction, agent_id)
        )

    return AgentMail(
        name="orchestration",
        unread=unread,
        mark_delivered=mark_delivered,
        waits_for_person=waits,
        agent_of=_agent_of,
    )


def _agent_of(call: AgentCall) -> str | None:
    """Return the agent that has registered, or that a call names when none has."""
    if call.tool.endswith("agent_register"):
        ids = [reply.get("id") for reply in call.replies]
    else:
        ids = [call.arguments.get(name) for name in ("agent_id", "sender_id") if call.agent_id is None]
    return next((agent_id for agent_id in ids if isinstance(agent_id, str)), None)


def _waiting(transaction: PlanTransaction, agent_id: str) -> Iterator[AgentMessage]:
    """Yield pauses, messages, the most urgent first, then the oldest, and free tasks; people have their inbox."""
    agent = transaction.find(Agent, agent_id)
    if agent is None or agent.is_person:
        return
    for row in pauses.of_agent(transaction, agent_id):
        about = f"{paused_text(row.reason, 'plan')} It is {one_line(row.name)} ({row.workflow_id})."
        yield AgentMessage(id=f"{row.workflow_id}-{row.paused_at}", text="", about=about, is_pause=True)
    unread, _ = messages.waiting_for(transaction, agent_id, LOADED, MAX_BODY + 1)
    for message in unread:
        yield _shown(transaction, message)
    for task in claims.unblocked(transaction, agent, MAX_UNBLOCKED):
        yield _free(task, agent)


def _free(task: Any, agent: Agent) -> AgentMessage:
    """Return the notice of a task that waits for no other any more; a coordinator hands it out, others may take it."""
    call = f"task_claim(task_id={task.id!r}, agent_id={agent.id!r}) takes it."
    if agent.role == "coordinator":
        call = f"workflow_next_tasks(workflow_id={task.workflow_id!r}) shows what can be started."
    name = f"Task {one_line(task.name, MAX_NAME)!r} ({task.id}) of plan {task.workflow_id}"
    about = f"{name} can be started: the last task that it waited for has ended."
    return AgentMessage(id=task.id, text="", about=about, answer=call)


def _shown(transaction: PlanTransaction, message: Message) -> AgentMessage:
    """Return a message as the hook shows it: only what this plugin itself knows stands outside of the quotation."""
    ids = ("workflow", message.workflow_id), ("task", message.task_id), ("reply to", message.reply_to_id)
    body = visible_lines(body_text(message.body))
    cut = f"; cut here, message_get(id={message.id!r}) gives all" if len(body) > MAX_BODY else ""
    about = "".join(f", {name} {value}" for name, value in ids if value)
    sender = messages.shown_sender(transaction, message)
    return AgentMessage(
        id=message.id,
        about=f"Message ({message.message_type}, {message.priority}) from {sender}{about}{cut}:",
        text="\n".join(filter(None, [one_line(message.subject or "", MAX_SUBJECT), body[:MAX_BODY]])),
        answer=_how_to_answer(transaction, message),
    )


def _how_to_answer(transaction: PlanTransaction, message: Message) -> str:
    if message.sender_id is None:
        return "It needs no answer."
    call = (
        f"message_send(sender_id={message.recipient_id!r}, recipient_id={message.sender_id!r}, "
        f"reply_to_id={message.id!r}, message_type='response', body=...)"
    )
    is_person = transaction.get(Agent, message.sender_id).is_person
    words = "a person, as far as this machine can tell" if is_person else "another agent, not of your user"
    return f"These are the words of {words}; {call} answers."
