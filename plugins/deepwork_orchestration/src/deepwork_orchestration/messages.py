"""Messages between agents, and to the people they work for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, get_args

from deepwork_orchestration import agents
from deepwork_orchestration.agents import IS_PERSON, actor, note_call, renew_leases
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
from deepwork_orchestration.models import Agent, Mapped, Message, Task, Workflow
from deepwork_orchestration.names import SYSTEM, shown_agent
from deepwork_orchestration.sql import CUT, Filters, Listing, columns, listing, sql
from deepwork_orchestration.states import PERSON
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import new_id
from deepwork_sql.shares import in_turns
from deepwork_sql.statement import Statement

# So many bytes are stored by one broadcast: others wait meanwhile.
MAX_BROADCAST = 32 * 1024 * 1024
# A time below this is in seconds: in milliseconds it would be in 1973.
SECONDS_BELOW = 10**11
# Stands for the person whose agent sends a message.
TO_PERSON = "person"
PRIORITIES = get_args(Priority)
# `\u001b` stands for one character in JSON.
LONGEST_ESCAPE = 6

_ALL = "FROM orchestration_messages"
_NOT_EXPIRED = "(expires_at IS NULL OR expires_at > :now)"
_PEOPLE = f"(SELECT id FROM orchestration_agents WHERE {IS_PERSON})"
_IS_THEIRS = "(recipient_id = :agent_id OR sender_id = :agent_id)"
_UNREAD_QUESTION = sql(
    f"SELECT id {_ALL} WHERE sender_id = :sender_id AND message_type = 'query' AND status = 'unread' "
    f"AND {_NOT_EXPIRED} AND recipient_id IN {_PEOPLE} LIMIT 1"
)
_URGENCIES = " ".join(f"WHEN '{word}' THEN {-place}" for place, word in enumerate(PRIORITIES))
_URGENCY = f"CASE m.priority {_URGENCIES} END"


def _waiting(recipient: str) -> str:
    """Return the statement for unread messages: the most urgent first, then the oldest.

    Each principal and each sender of it has a share of the messages that there is room for.
    """
    candidates = (
        f"SELECT m.id, {_URGENCY} AS urgency, m.created_at, m.number, m.sender_id, a.principal "
        "FROM orchestration_messages AS m LEFT JOIN orchestration_agents AS a ON a.id = m.sender_id "
        f"WHERE m.recipient_id {recipient} AND m.status = 'unread' AND {_NOT_EXPIRED}"
    )
    order = ("urgency", "created_at", "number")
    turns = in_turns(candidates, order=order, groups=("principal", "sender_id"))
    read = columns(Message, "m", absent=["body"])
    beginning = CUT.format("CAST(m.body AS TEXT)")
    return (
        f"SELECT {read}, {beginning} AS beginning, chosen.total FROM orchestration_messages AS m "
        f"JOIN ({turns} LIMIT :limit) AS chosen ON chosen.id = m.id "
        f"ORDER BY {', '.join(f'chosen.{name}' for name in order)}"
    )


_WAITING_FOR_PEOPLE = sql(_waiting(f"IN {_PEOPLE}"))
_WAITING_FOR_AGENT = sql(_waiting("= :agent_id"))


# The tools.


def message_send(
    transaction: PlanTransaction,
    /,
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
    recipient = _recipient(transaction, recipient_id)
    sender = actor(transaction, sender_id, "sender")
    parent = transaction.get(Message, reply_to_id) if reply_to_id is not None else None
    if workflow_id is not None:
        transaction.get(Workflow, workflow_id)
    if task_id is not None:
        transaction.get(Task, task_id)
    renew_leases(transaction, sender)
    message = deliver(
        transaction,
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
    return {"id": message.id, "thread_id": message.thread_id}


def message_broadcast(
    transaction: PlanTransaction,
    /,
    sender_id: Id,
    message_type: BroadcastType,
    body: Body,
    recipient_filter: RecipientFilter | None = None,
    subject: Text | None = None,
    priority: Priority = "normal",
    workflow_id: Id | None = None,
    expires_in: Seconds | None = None,
) -> Mapped:
    """Send a message to all other agents, or to all that fit the filter."""
    sender = actor(transaction, sender_id, "sender")
    if workflow_id is not None:
        transaction.get(Workflow, workflow_id)
    renew_leases(transaction, sender)
    chosen = recipient_filter or RecipientFilter()
    filters = Filters(role=chosen.role, status=chosen.status, runtime=chosen.runtime)
    recipient_ids = agents.ids(transaction, filters)
    size = (size_of(body) + size_of(subject)) * len(recipient_ids)
    if size > MAX_BROADCAST:
        raise invalid_input(
            "body",
            f"goes to {len(recipient_ids):,} agents, and has {size:,} bytes in all; the limit is {MAX_BROADCAST:,}",
            "Keep it in a file, or narrow recipient_filter.",
        )
    values: Mapped = {"sender_id": sender_id, "message_type": message_type, "body": body, "subject": subject}
    values |= {"priority": priority, "workflow_id": workflow_id, "expires_in": expires_in, "thread_id": new_id("thr")}
    sent = [
        deliver(transaction, recipient_id=recipient_id, **values).id
        for recipient_id in recipient_ids
        if recipient_id != sender_id
    ]
    return {"sent_count": len(sent), "message_ids": sent}


def message_list(
    transaction: PlanTransaction,
    /,
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
    note_call(transaction, agent_id)
    if workflow_id is not None:
        transaction.get(Workflow, workflow_id)
    chosen_status = status or ("unread" if thread_id is None else "all")
    filters = Filters(
        status=None if chosen_status == "all" else chosen_status, workflow_id=workflow_id, thread_id=thread_id
    )
    filters.one_of("message_type", message_type).one_of("priority", priority)
    filters.add("recipient_id = :agent_id" if thread_id is None else _IS_THEIRS, agent_id=agent_id)
    filters.add(_NOT_EXPIRED, now=transaction.now)
    if since is not None:
        filters.add("created_at > :since", since=int(since * 1000 if since < SECONDS_BELOW else since))
    messages, left_out = transaction.some_of(Message, _newest(filters), limit=limit, **filters.arguments)
    unread = sum(_unread_by_priority(transaction, agent_id).values())
    listed = [message.reply() for message in messages]
    return {"messages": listed, **omitted("messages", left_out), "unread_count": unread}


def message_get(transaction: PlanTransaction, /, id: Id, *, mark_read: Flag = True) -> Mapped:  # noqa: A002
    """Read a message."""
    message = transaction.get(Message, id)
    if mark_read and message.status == "unread" and _may_settle(transaction, message):
        message = transaction.change(Message, id, status="read", read_at=transaction.now)
    return message.reply()


def message_mark_read(transaction: PlanTransaction, /, message_ids: Texts) -> Mapped:
    """Mark messages as read."""
    _check_settled_by(transaction, message_ids)
    mark_read(transaction, message_ids)
    return {"success": True}


def message_archive(transaction: PlanTransaction, /, message_ids: Texts) -> Mapped:
    """Archive messages."""
    _check_settled_by(transaction, message_ids)
    archiving = "UPDATE orchestration_messages SET status = 'archived' WHERE id IN {ids} AND status <> 'archived'"
    transaction.in_batches(archiving, message_ids)
    return {"success": True}


def message_count_unread(
    transaction: PlanTransaction, /, agent_id: Id, priority: list[Priority] | None = None
) -> Mapped:
    """Count an agent's unread messages."""
    note_call(transaction, agent_id)
    by_priority = _unread_by_priority(transaction, agent_id, priority)
    return {"count": sum(by_priority.values()), "by_priority": by_priority}


# How a message is stored and settled.


def deliver(transaction: PlanTransaction, *, expires_in: int | None = None, **values: Any) -> Message:
    """Store a message, which begins a thread if it belongs to none."""
    message = transaction.add(
        Message,
        **{"priority": "normal", **values, "thread_id": values.get("thread_id") or new_id("thr")},
        status="unread",
        expires_at=None if expires_in is None else transaction.now + expires_in * 1000,
    )
    transaction.emit("message:sent", message.workflow_id, message.event())
    return message


def mark_read(transaction: PlanTransaction, message_ids: Sequence[str]) -> None:
    """Mark those of the messages as read that are unread; unknown ids are ignored."""
    marking = (
        "UPDATE orchestration_messages SET status = 'read', read_at = :now WHERE id IN {ids} AND status = 'unread'"
    )
    transaction.in_batches(marking, message_ids, now=transaction.now)


def _recipient(transaction: PlanTransaction, recipient_id: str) -> Agent:
    """Return the recipient of a message: `person` is the person whose agent calls."""
    if recipient_id != TO_PERSON:
        return transaction.get(Agent, recipient_id, "recipient")
    principal = transaction.principal if transaction.is_person else f"{PERSON}{transaction.principal}"
    return agents.person(transaction, principal)


def _may_settle(transaction: PlanTransaction, message: Message) -> bool:
    """True unless an agent reads a message that waits for a person."""
    return transaction.is_person or not transaction.get(Agent, message.recipient_id).is_person


def _check_settled_by(transaction: PlanTransaction, message_ids: Sequence[str]) -> None:
    """Refuse to take messages to people off their inbox; unknown ids are ignored.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if transaction.is_person:
        return
    to_people = f"SELECT id {_ALL} WHERE id IN {{ids}} AND recipient_id IN {_PEOPLE}"
    ids = [row.id for row in transaction.in_batches(to_people, message_ids)]
    if ids:
        text = f"messages to people are theirs to settle: {', '.join(ids)}; nothing was changed"
        raise OrchestrationError("INVALID_STATE", text, "Leave them out.")


# Which messages there are.


def _newest(filters: Filters) -> Listing:
    return listing(Message, f"{_ALL} {filters.where()} ORDER BY created_at DESC, number DESC LIMIT :limit")


def about(transaction: PlanTransaction, workflow_id: str | None, agent_id: str | None, limit: int) -> list[Message]:
    """Return the newest messages about a workflow, or that an agent has sent or received."""
    filters = Filters(workflow_id=workflow_id)
    if agent_id is not None:
        filters.add(_IS_THEIRS, agent_id=agent_id)
    messages, _ = transaction.some_of(Message, _newest(filters), limit=limit, **filters.arguments)
    return messages


def has_unread_question(transaction: PlanTransaction, sender_id: str) -> bool:
    """True if a person has not read a question of an agent."""
    return transaction.row(_UNREAD_QUESTION, sender_id=sender_id, now=transaction.now) is not None


def waiting_for_people(transaction: PlanTransaction, limit: int, characters: int) -> tuple[list[Message], int]:
    """Return unread messages to people, with the beginnings of their bodies, and how many there are in all."""
    return _unread(transaction, _WAITING_FOR_PEOPLE, limit, characters)


def waiting_for(transaction: PlanTransaction, agent_id: str, limit: int, characters: int) -> tuple[list[Message], int]:
    """Return the same of one agent."""
    return _unread(transaction, _WAITING_FOR_AGENT, limit, characters, agent_id=agent_id)


def _unread(
    transaction: PlanTransaction, statement: Statement, limit: int, characters: int, **more: str
) -> tuple[list[Message], int]:
    room = {"limit": limit, "characters": LONGEST_ESCAPE * characters, "now": transaction.now}
    rows = transaction.rows(statement, **room, **more)
    messages = [replace(Message(*row[:-2]), body=_beginning(row.beginning)) for row in rows]
    return messages, rows[0].total if rows else 0


def _beginning(body: str) -> Any:
    """Read the JSON of a body that is perhaps cut; of an object that is cut, the text is all there is."""
    with suppress(ValueError):
        return json.loads(body)
    if body.startswith('"'):
        for end in range(len(body), len(body) - LONGEST_ESCAPE, -1):  # it may be cut within an escape
            with suppress(ValueError):
                return json.loads(f'{body[:end]}"')
    return body


def _unread_by_priority(
    transaction: PlanTransaction, agent_id: str, priorities: list[Priority] | None = None
) -> dict[str, int]:
    filters = Filters(recipient_id=agent_id, status="unread").one_of("priority", priorities)
    filters.add(_NOT_EXPIRED, now=transaction.now)
    counting = sql(f"SELECT priority, count(*) AS total {_ALL} {filters.where()} GROUP BY priority")
    return dict(transaction.rows(counting, **filters.arguments))


def shown_sender(transaction: PlanTransaction, message: Message) -> str:
    """Return who has sent a message, as people and other agents are shown it."""
    if message.sender_id is None:
        return SYSTEM
    return shown_agent(message.sender_id, transaction.get(Agent, message.sender_id).name)
