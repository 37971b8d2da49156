"""What of the plans waits for a person: tasks that only they can do, messages to them, and plans that are stuck."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import deepwork_sql
from deepwork.api import Answerer, InboxAction, InboxItem, InboxSource, PluginContext, ToolCall
from deepwork.errors import UnknownItem
from deepwork.ports.inbox import InboxContents
from deepwork_orchestration import agents, checkpoints, claims, messages, people, reservations, tasks
from deepwork_orchestration.database import PlanDatabase
from deepwork_orchestration.errors import OrchestrationError, invalid_input, some
from deepwork_orchestration.interventions import call_of
from deepwork_orchestration.messages import PRIORITIES
from deepwork_orchestration.models import Agent, Message, Task, Workflow
from deepwork_orchestration.names import body_text
from deepwork_orchestration.opening import open_database
from deepwork_orchestration.states import BEGUN, HUMAN
from deepwork_orchestration.transaction import PlanTransaction

# People send no heartbeats, and may take days.
PERSON_LEASE_MS = 7 * 24 * 3600 * 1000
# So many tasks and so many messages are listed.
MAX_LISTED = 500
# So much of a text is read; the inbox shows no more of it.
MAX_DETAIL = 4001

CLAIM = InboxAction(name="claim", label="Take it")
COMPLETE = InboxAction(name="complete", label="Complete", text="outcome")
RELEASE = InboxAction(name="release", label="Give it back")
REPLY = InboxAction(name="reply", label="Reply", text="reply")
READ = InboxAction(name="read", label="Mark as read")
RETRY = InboxAction(name="retry", label="Try again")
SKIP = InboxAction(name="skip", label="Skip")
REASSIGN = InboxAction(name="reassign", label="Give it to an agent", text="agent")
EDIT = InboxAction(name="edit", label="Describe it anew", text="description")

# Of a stuck plan so many failed tasks can be answered, and so much of the error of each is shown.
MAX_FAILED = 20
MAX_ERROR = 300

_TASK, _MESSAGE, _PLAN = "task", "message", "plan"
_ACT = "answer what waits for people in plans"


class PlanInbox(InboxSource):
    """The tasks with `required_capabilities: ["human"]` that are ready, unread messages to people, and stuck plans.

    A person acts as `person:PRINCIPAL`, a name that no call of a tool has.
    """

    def __init__(self, context: PluginContext) -> None:
        self._context = context

    async def items(self) -> InboxContents:
        """Read them; nothing before there is a database."""
        if not deepwork_sql.has_database(self._context):
            return InboxContents(items=())
        return await self._database().read(ToolCall(), _items)

    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Do what the tools `task_claim`, `task_update_status`, `task_release` and `message_send` do."""
        kind, _, row_id = item_id.partition(".")
        call = call_of(by, _ACT, text)
        if kind == _MESSAGE:
            return await self._database().write(
                call, lambda transaction: _answer_message(transaction, row_id, action, text)
            )
        return await self._database().write(
            call, lambda transaction: _answer_task(transaction, row_id, action, text, by)
        )

    async def answer_task(self, item_id: str, action: str, task_id: str, text: str | None, by: Answerer) -> str:
        """Decide what becomes of a failed task of a stuck plan."""
        workflow_id = item_id.removeprefix(f"{_PLAN}.")
        call = call_of(by, _ACT, text)
        # A task is reserved for as long as agents have one, not for the days of people.
        database = open_database(self._context)
        answer = _Answer(action, text or "", by)
        return await database.write(call, lambda transaction: _answer_plan(transaction, workflow_id, task_id, answer))

    def _database(self) -> PlanDatabase:
        return replace(open_database(self._context), lease=PERSON_LEASE_MS)


def _items(transaction: PlanTransaction) -> InboxContents:
    by_id = {person.id: person for person in agents.people(transaction)}
    ready, task_count = people.tasks_for_people(transaction, MAX_LISTED, MAX_DETAIL)
    unread, unread_count = messages.waiting_for_people(transaction, MAX_LISTED, MAX_DETAIL)
    failed = people.failed_of_stuck_plans(transaction, MAX_LISTED, MAX_ERROR, MAX_FAILED)
    stuck = [[*of_plan] for _, of_plan in groupby(failed, key=attrgetter("workflow_id"))]
    stuck_count = stuck[0][0].total if stuck else 0
    items = [
        *map(_plan_item, stuck),
        *(_task_item(task, by_id) for task in ready),
        *(_message_item(transaction, message, by_id[message.recipient_id]) for message in unread),
    ]
    more = task_count - len(ready) + unread_count - len(unread) + stuck_count - len(stuck)
    return InboxContents(items=tuple(items), more=more)


def _plan_item(failed: Sequence[Any]) -> InboxItem:
    """Make the item of a plan from its failed tasks."""
    first = failed[0]
    names = ", ".join(repr(task.name) for task in failed[:3])
    rest = f" and {first.failed - 3} more" if first.failed > 3 else ""
    verb = "has" if first.failed == 1 else "have"
    waiting = f"{first.waiting} tasks wait" if first.waiting != 1 else "1 task waits"
    unlisted = [f"{first.failed - len(failed)} more have failed"] if first.failed > len(failed) else []
    choices = {task.id: task.name for task in failed}
    return InboxItem(
        id=f"{_PLAN}.{first.workflow_id}",
        kind="plan-stuck",
        who=f"plan {first.workflow_name}",
        what=f"{first.workflow_name}: nothing can go on: {names}{rest} {verb} failed, {waiting}",
        detail="\n".join([*(f"{task.name} ({task.id}): {task.error}" for task in failed), *unlisted]),
        since=_iso(first.since),
        state=f"stuck {first.since}",
        reference={"kind": "plan", "id": first.workflow_id},
        actions=tuple(replace(action, tasks=choices) for action in (RETRY, SKIP, REASSIGN, EDIT)),
    )


def _task_item(task: Any, people_by_id: dict[str, Agent]) -> InboxItem:
    # An agent that only said that it was a person may hold it since an earlier release; people may take it back.
    holder = people_by_id.get(task.assigned_agent_id or "")
    return InboxItem(
        id=f"{_TASK}.{task.id}",
        kind="human-task",
        who=f"plan {task.workflow_name}",
        what=f"{task.workflow_name}: {task.name}",
        detail="\n".join(filter(None, [task.description, _approach(task.plan_text)])),
        since=_iso(task.updated_at),
        state=f"{'held' if holder else 'ready'} {task.updated_at}",
        reference={"kind": "task", "id": task.id, "workflow_id": task.workflow_id},
        held_by=holder.name if holder else None,
        actions=(COMPLETE, RELEASE) if holder else (CLAIM, COMPLETE),
    )


def _approach(plan_text: str | None) -> str | None:
    """Indent the JSON of a plan for people; the beginning of a long plan stays as it is."""
    if plan_text is None or len(plan_text) == MAX_DETAIL:
        return plan_text
    plan = json.loads(plan_text)
    return json.dumps(plan, ensure_ascii=False, indent=2) if plan else None


def _message_item(transaction: PlanTransaction, message: Message, person: Agent) -> InboxItem:
    body = body_text(message.body)
    return InboxItem(
        id=f"{_MESSAGE}.{message.id}",
        kind="message",
        who=messages.shown_sender(transaction, message),
        what=f"To {person.name}: {message.subject or body}",
        detail=body,
        since=_iso(message.created_at),
        state="unread",
        urgency=PRIORITIES.index(message.priority) - 1,
        reference={"kind": "message", "id": message.id, "agent_id": message.recipient_id},
        actions=(REPLY, READ) if message.sender_id else (READ,),
    )


def _answer_message(transaction: PlanTransaction, message_id: str, action: str, text: str | None) -> str:
    message = transaction.get(Message, message_id)
    if message.status != "unread":
        raise UnknownItem(f"Message {message_id!r} was read meanwhile; nothing was changed")
    if action == REPLY.name and message.sender_id and text:
        messages.message_send(
            transaction,
            sender_id=message.recipient_id,
            recipient_id=message.sender_id,
            message_type="response",
            body=text,
            workflow_id=message.workflow_id,
            task_id=message.task_id,
            reply_to_id=message.id,
        )
    messages.message_mark_read(transaction, [message_id])
    return f"The reply to {message_id} is sent" if action == REPLY.name else f"{message_id} is marked as read"


class _Answer(NamedTuple):
    """The decision of a person: an action and its text."""

    action: str
    text: str
    by: Answerer


def _answer_plan(transaction: PlanTransaction, workflow_id: str, task_id: str, answer: _Answer) -> str:
    action, text, by = answer
    workflow, task = transaction.get(Workflow, workflow_id), transaction.get(Task, task_id)
    if task.workflow_id != workflow_id or task.status != "failed" or not people.is_stuck(transaction, workflow_id):
        raise UnknownItem(f"The plan {workflow.name!r} has changed since you saw it; nothing was changed")
    agent = _named_agent(transaction, task, text) if action == REASSIGN.name else None
    if action == EDIT.name:
        transaction.change(Task, task_id, description=text)
    reservations.unreserve(transaction, task_id)
    tasks.task_update_status(transaction, task_id, "skipped" if action == SKIP.name else "pending")
    detail = {"action": action, "error": task.error, "answered": {"by": _name(by), **by.recorded()}}
    if action == EDIT.name:
        detail["previous_description"] = task.description
    if agent is not None:
        detail["agent_id"] = agent.id
    checkpoints.add(
        transaction, task, "decision", f"{_name(by)} answered {action!r} after it had failed", detail=detail
    )
    if agent is not None:
        return _reserve(transaction, task, agent)
    done = {SKIP.name: "is skipped", EDIT.name: "is pending again, with the new description"}
    return f"{task.name!r} {done.get(action, 'is pending again')}"


def _named_agent(transaction: PlanTransaction, task: Task, name: str) -> Agent:
    """Return the agent of an id or a name; among several of a name, the only one online.

    Raises:
        OrchestrationError: INVALID_INPUT or INVALID_STATE; nothing was changed.
    """
    if HUMAN in (task.required_capabilities or ()):
        text = f"task {task.name!r} is for a person, and no agent can do it; nothing was changed"
        raise OrchestrationError("INVALID_STATE", text, "`retry` lets it wait for a person again.")
    namesakes = agents.named(transaction, name)
    present = [agent for agent in namesakes if agent.status != "offline"]
    if len(present) == 1:
        return present[0]
    listing = "`deepwork plan agents` lists the agents."
    if present:
        ids = some([agent.id for agent in present])
        raise invalid_input("agent", f"{name[:100]!r} is the name of several: {ids}; nothing was changed", listing)
    problem = "is offline" if namesakes else "is neither the id nor the name of an agent"
    raise invalid_input("agent", f"{name[:100]!r} {problem}; nothing was changed", listing)


def _reserve(transaction: PlanTransaction, task: Task, agent: Agent) -> str:
    until = _iso(reservations.reserve(transaction, task, agent))
    messages.deliver(
        transaction,
        recipient_id=agent.id,
        message_type="notification",
        subject=f"Task {task.name} is reserved for you",
        body=f"A person has chosen you for task {task.name!r} ({task.id}), which has failed. Until {until} you alone "
        "may claim it, with task_claim.",
        priority="high",
        workflow_id=task.workflow_id,
        task_id=task.id,
    )
    reserved = {"id": task.id, "name": task.name, "agent_id": agent.id, "until": until}
    transaction.emit("task:reserved", task.workflow_id, reserved)
    return f"{task.name!r} is pending again; until {until} only agent {agent.name!r} ({agent.id}) may claim it"


def _answer_task(transaction: PlanTransaction, task_id: str, action: str, text: str | None, by: Answerer) -> str:
    task = transaction.get(Task, task_id)
    if task.assigned_agent_id is not None and not transaction.get(Agent, task.assigned_agent_id).is_person:
        claims.release(transaction, task, "an agent held it, and it is for people")
        task = transaction.get(Task, task_id)
    if action == RELEASE.name:
        holder_id = _holder(task)
        claims.task_release(transaction, task_id, holder_id, reason=f"by {_name(by)}")
        return f"{task.name!r} is given back"
    if action == CLAIM.name or task.assigned_agent_id is None:
        person = agents.person(transaction, transaction.principal)
        if not claims.claim(transaction, task_id, person.id).reply["success"]:
            raise UnknownItem(f"Task {task_id!r} was taken meanwhile; nothing was changed")
        if action == CLAIM.name:
            return f"{task.name!r} is yours, as agent {person.name!r}; complete it when it is done"
    _complete(transaction, transaction.get(Task, task_id), text or "", by)
    return f"{task.name!r} is completed"


def _complete(transaction: PlanTransaction, task: Task, outcome: str, by: Answerer) -> None:
    """Lead a task from wherever it is to its end, as its holder."""
    holder_id = _holder(task)
    on_the_way: dict[str, tuple[Any, ...]] = {"pending": ("planning",), "paused": ("in_progress",)}
    for status in on_the_way.get(task.status, ()):
        tasks.task_update_status(transaction, task.id, status, agent_id=holder_id)
    detail = {"answered": {"by": _name(by), **by.recorded()}}
    tasks.task_update_status(
        transaction, task.id, "completed", outcome=outcome, outcome_detail=detail, agent_id=holder_id
    )


def _holder(task: Task) -> str:
    """Return the person who holds a task; the answer is given in their name.

    Raises:
        OrchestrationError: NOT_CLAIMED.
    """
    if task.assigned_agent_id is None or task.status not in ("pending", *BEGUN):
        text = f"task {task.id} is no longer claimed; nothing was changed"
        raise OrchestrationError("NOT_CLAIMED", text, "`deepwork inbox` lists what waits.")
    return task.assigned_agent_id


def _name(by: Answerer) -> str:
    return by.principal or by.user or "a person"


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
