"""The tools about messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from deepwork_orchestration import agents, claims
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import (
    Body,
    BroadcastType,
    Flag,
    Id,
    Limit,
    MessageType,
    Priority,
    RecipientFilter,
    Seconds,
    Text,
    Texts,
    Timestamp,
)
from deepwork_orchestration.errors import OrchestrationError, invalid_input
from deepwork_orchestration.limits import omitted, size_of
from deepwork_orchestration.models import Agent, Mapped, Message
from deepwork_orchestration.states import PERSON

# So many bytes are stored by one broadcast: others wait meanwhile.
MAX_BROADCAST = 32 * 1024 * 1024
# A time below this is in seconds: in milliseconds it would be in 1973.
SECONDS_BELOW = 10**11
# Stands for the person whose agent sends a message.
TO_PERSON = "person"


def message_send(
    act: Act,
    sender_id: Id,
    recipient_id: Id,
    message_type: MessageType,
    body: Body,
    subject: Text | None = None,
    priority: Priority = "normal",
    workflow_id: Id | None = None,
    task_id: Id | None = None,
    reply_to_id: Id | None = None,
    expires_in: Seconds | None = None,
) -> Mapped:
    """Send a message to an agent, or to your user: recipient_id person."""
    recipient = _recipient(act, recipient_id)
    sender = claims.actor(act, sender_id, "sender")
    parent = act.records.message(reply_to_id) if reply_to_id is not None else None
    if workflow_id is not None:
        act.records.workflow(workflow_id)
    if task_id is not None:
        act.records.task(task_id)
    claims.beat(act, sender)
    message_id, thread_id = deliver(
        act,
        sender_id=sender_id,
        recipient_id=recipient.id,
        message_type=message_type,
        body=body,
        subject=subject,
        priority=priority,
        workflow_id=workflow_id,
        task_id=task_id,
        reply_to_id=reply_to_id,
        thread_id=parent.thread_id if parent else None,
        expires_in=expires_in,
    )
    return {"id": message_id, "thread_id": thread_id}


def message_broadcast(
    act: Act,
    sender_id: Id,
    message_type: BroadcastType,
    body: Body,
    recipient_filter: RecipientFilter | None = None,
    subject: Text | None = None,
    priority: Priority = "normal",
    workflow_id: Id | None = None,
    expires_in: Seconds | None = None,
) -> Mapped:
    """Send a message to all other agents, or those that fit the filter."""
    sender = claims.actor(act, sender_id, "sender")
    if workflow_id is not None:
        act.records.workflow(workflow_id)
    claims.beat(act, sender)
    chosen = recipient_filter or RecipientFilter()
    statuses = None if chosen.status is None else [chosen.status]
    agent_ids = act.records.agent_ids(statuses=statuses, role=chosen.role, runtime=chosen.runtime)
    size = (size_of(body) + size_of(subject)) * len(agent_ids)
    if size > MAX_BROADCAST:
        raise invalid_input(
            "body",
            f"goes to {len(agent_ids):,} agents, and has {size:,} bytes in all; the limit is {MAX_BROADCAST:,}",
            "Keep it in a file, or narrow recipient_filter.",
        )
    thread_id: str | None = None
    message_ids: list[str] = []
    for agent_id in agent_ids:
        if agent_id != sender_id:
            message_id, thread_id = deliver(
                act,
                sender_id=sender_id,
                recipient_id=agent_id,
                message_type=message_type,
                body=body,
                subject=subject,
                priority=priority,
                workflow_id=workflow_id,
                thread_id=thread_id,
                expires_in=expires_in,
            )
            message_ids.append(message_id)
    return {"sent_count": len(message_ids), "message_ids": message_ids}


def message_list(
    act: Act,
    agent_id: Id,
    status: Literal["unread", "read", "all"] | None = None,
    message_type: list[MessageType] | None = None,
    priority: list[Priority] | None = None,
    workflow_id: Id | None = None,
    thread_id: Id | None = None,
    limit: Limit = 20,
    since: Timestamp | None = None,
) -> Mapped:
    """List an agent's unread messages, newest first; with thread_id all of a thread, sent ones too."""
    claims.notice(act, agent_id)
    if workflow_id is not None:
        act.records.workflow(workflow_id)
    chosen_status = status or ("unread" if thread_id is None else "all")
    messages, left_out = act.records.inbox(
        agent_id,
        status=None if chosen_status == "all" else chosen_status,
        message_types=message_type,
        priorities=priority,
        workflow_id=workflow_id,
        thread_id=thread_id,
        since=None if since is None else _milliseconds(since),
        limit=limit,
    )
    unread = sum(act.records.unread_by_priority(agent_id).values())
    listed = [message.reply() for message in messages]
    return {"messages": listed, **omitted("messages", left_out), "unread_count": unread}


def message_get(act: Act, id: Id, *, mark_read: Flag = True) -> Mapped:  # noqa: A002
    """Read a message."""
    message = act.records.message(id)
    if mark_read and message.status == "unread" and _may_settle(act, message):
        message = act.records.change(Message, id, status="read", read_at=act.now)
    return message.reply()


def message_mark_read(act: Act, message_ids: Texts) -> Mapped:
    """Mark messages as read."""
    _check_settled_by(act, message_ids)
    act.records.mark(message_ids, ["unread"], status="read", read_at=act.now)
    return {"success": True}


def message_archive(act: Act, message_ids: Texts) -> Mapped:
    """Archive messages."""
    _check_settled_by(act, message_ids)
    act.records.mark(message_ids, ["unread", "read"], status="archived")
    return {"success": True}


def message_count_unread(act: Act, agent_id: Id, priority: list[Priority] | None = None) -> Mapped:
    """Count an agent's unread messages."""
    claims.notice(act, agent_id)
    by_priority = act.records.unread_by_priority(agent_id, priority)
    return {"count": sum(by_priority.values()), "by_priority": by_priority}


def deliver(
    act: Act,
    *,
    recipient_id: str,
    message_type: str,
    body: str | Mapped,
    sender_id: str | None = None,
    priority: str = "normal",
    thread_id: str | None = None,
    expires_in: int | None = None,
    **values: Any,
) -> tuple[str, str]:
    """Store a message, and give its id and its thread; a message without a thread begins one."""
    from deepwork_sql import new_id

    message = act.records.add(
        Message,
        sender_id=sender_id,
        recipient_id=recipient_id,
        message_type=message_type,
        body=body,
        priority=priority,
        status="unread",
        thread_id=thread_id or new_id("thr"),
        expires_at=None if expires_in is None else act.now + expires_in * 1000,
        **values,
    )
    act.emit("message:sent", message.workflow_id, message.event())
    return message.id, message.thread_id


def _recipient(act: Act, recipient_id: str) -> Agent:
    """Return to whom a message goes: `person` is the person whose agent calls."""
    if recipient_id != TO_PERSON:
        return act.records.agent(recipient_id, "recipient")
    return agents.person(act, act.principal if act.is_person else f"{PERSON}{act.principal}")


def _may_settle(act: Act, message: Message) -> bool:
    """True unless the message waits for a person, and somebody else reads it."""
    return act.is_person or not act.records.agent(message.recipient_id).is_person


def _check_settled_by(act: Act, message_ids: Sequence[str]) -> None:
    """Refuse to take messages to people off their inbox; unknown ids are ignored.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if act.is_person:
        return
    to_people = act.records.of_people(message_ids)
    if to_people:
        text = f"messages to people are theirs to settle: {', '.join(to_people)}; nothing was changed"
        raise OrchestrationError("INVALID_STATE", text, "Leave them out.")


def _milliseconds(time: float) -> int:
    return int(time * 1000) if time < SECONDS_BELOW else int(time)
