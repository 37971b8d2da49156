"""Claims: who holds a task, whose call may change it, and how a claim ends.

A claim is a lease with a fence in the database. What a task says of its holder is right at any moment of a transaction,
because every call first ends the claims whose lease has run out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from deepwork.api import ToolCall
from deepwork_orchestration import checkpoints, dependencies, pauses, reservations
from deepwork_orchestration.agents import REVIVE, actor, check_online, note_call, renew_leases
from deepwork_orchestration.arguments import Fence, Id, Limit, Text
from deepwork_orchestration.database import CLAIMED, PlanDatabase, Request
from deepwork_orchestration.errors import OrchestrationError, some
from deepwork_orchestration.limits import fitting, omitted
from deepwork_orchestration.models import Agent, Mapped, Task, Workflow
from deepwork_orchestration.reservations import check_reserved
from deepwork_orchestration.sql import columns, one_of, size, sql
from deepwork_orchestration.states import BEGUN, CLOSED, DONE, HUMAN
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_orchestration.workspace_folders import folder_of_claim
from deepwork_sql import LeaseLost, leases

# So many free tasks are looked at together.
SEEN = 100

# The columns of a task without a holder.
UNCLAIMED: Mapped = {"assigned_agent_id": None, "claimed_at": None, "claimed_by": None, "fence": None}

_TASKS = "FROM orchestration_tasks"
# What ends a claim asks for none of the long texts.
_SHORT_TASK = columns(Task, absent=("description", "plan", "context", "outcome", "outcome_detail", "error"))
_HELD_BY = sql(f"SELECT {_SHORT_TASK} {_TASKS} WHERE assigned_agent_id = :agent_id ORDER BY claimed_at, fence, number")
_HOLDERS = sql(f"SELECT DISTINCT assigned_agent_id {_TASKS} WHERE assigned_agent_id IS NOT NULL")
_AVAILABLE = (
    f"SELECT id, name, workflow_id, required_capabilities, {size(Task)} AS size {_TASKS} WHERE status = 'pending' "
    "AND assigned_agent_id IS NULL AND open_dependencies = 0 AND workflow_id NOT IN "
    f"(SELECT id FROM orchestration_workflows WHERE {one_of('status', CLOSED)}) "
    "AND workflow_id NOT IN (SELECT workflow_id FROM orchestration_pauses) {}"
    "ORDER BY sequence, workflow_number, name LIMIT :limit OFFSET :offset"
)
_AVAILABLE_IN_ALL = sql(_AVAILABLE.format(""))
_AVAILABLE_IN_ONE = sql(_AVAILABLE.format("AND workflow_id = :workflow_id "))
_LAST_NEEDED_ENDED = (
    f"(SELECT max(needed.updated_at) FROM {dependencies.TABLE} AS d JOIN orchestration_tasks AS needed "
    "ON needed.id = d.depends_on_id WHERE d.task_id = orchestration_tasks.id AND d.type = 'blocks')"
)
_UNBLOCKED = sql(_AVAILABLE.format(f"AND {_LAST_NEEDED_ENDED} >= :since "))


# The tools.


async def task_claim(
    database: PlanDatabase, call: ToolCall, request: Request | None, /, task_id: Id, agent_id: Id
) -> Mapped:
    """Claim a task for an agent. success false names who has it already."""
    answer = await database.write(call, lambda transaction: claim(transaction, task_id, agent_id), request)
    reply, wants_workspace = _recorded(answer) if isinstance(answer, dict) else answer
    if reply["success"]:
        database.bindings.of(call).bind(task_id, agent_id, reply["fence"])
    return {**reply, **(await folder_of_claim(database, call, task_id) if wants_workspace else {})}


def task_release(
    transaction: PlanTransaction,
    /,
    task_id: Id,
    agent_id: Id,
    reason: Text | None = None,
    fence: Fence | None = None,
) -> Mapped:
    """Release a claimed task, to give it back; it is pending again."""
    task, agent = transaction.get(Task, task_id), actor(transaction, agent_id)
    _guard_release(transaction, task, agent, fence=fence)
    release(transaction, task, reason or f"by agent {agent.name!r}")
    return {"success": True}


def task_get_available(
    transaction: PlanTransaction, /, agent_id: Id, workflow_id: Id | None = None, limit: Limit = 20
) -> Mapped:
    """List the tasks that this agent may claim now."""
    agent = transaction.get(Agent, agent_id)
    if workflow_id is not None:
        transaction.get(Workflow, workflow_id)
    note_call(transaction, agent_id)
    suitable = [*islice(_offered(transaction, agent, _available(transaction, workflow_id, 2 * limit)), limit)]
    count = fitting([line.size for line in suitable])
    tasks = [transaction.get(Task, line.id).reply() for line in suitable[:count]]
    return {"tasks": tasks, **omitted("tasks", len(suitable) - count)}


# Which tasks can be claimed.


def _available(transaction: PlanTransaction, workflow_id: str | None, batch: int) -> Any:
    """Yield the pending tasks without a holder, by sequence, then by age of the workflow; read in batches."""
    statement = _AVAILABLE_IN_ALL if workflow_id is None else _AVAILABLE_IN_ONE
    chosen = {} if workflow_id is None else {"workflow_id": workflow_id}
    offset = 0
    while tasks := transaction.rows(statement, **chosen, limit=batch, offset=offset):
        yield from tasks
        offset += batch


def _offered(transaction: PlanTransaction, agent: Agent, tasks: Iterable[Any]) -> Iterator[Any]:
    """Yield those of the tasks that are offered to an agent."""
    reserved = reservations.live(transaction)
    for task in tasks:
        # A task that is reserved for it is offered without a look at its capabilities: a person has chosen it.
        if reserved[task.id] == agent.id if task.id in reserved else _fits(task, agent):
            yield task


def unblocked(transaction: PlanTransaction, agent: Agent, limit: int) -> list[Any]:
    """Return tasks that an agent may claim since the last that they waited for has ended; none if it has one already.

    What had ended before it has registered, it learns from `task_get_available`.
    """
    if agent.current_task_id is not None or agent.status == "offline":
        return []
    tasks = transaction.rows(_UNBLOCKED, since=agent.created_at, limit=SEEN, offset=0)
    return [*islice(_offered(transaction, agent, tasks), limit)]


def has_work(transaction: PlanTransaction, agent: Agent) -> bool:
    """True if an agent is offered a task."""
    return any(_fits(task, agent) for task in _available(transaction, None, SEEN))


def _fits(task: Any, agent: Agent) -> bool:
    """True if an agent is offered a task: people alone get what only they can do."""
    required = set(task.required_capabilities or ())
    if HUMAN in required and not agent.is_person:
        return False
    return not agent.capabilities or required - {HUMAN} <= set(agent.capabilities)


# How a claim begins.


class Claim(NamedTuple):
    """What has become of a claim.

    Attributes:
        reply: What the agent is told.
        wants_workspace: Whether the claim is to bring a folder with it.
    """

    reply: Mapped
    wants_workspace: bool


def claim(transaction: PlanTransaction, task_id: str, agent_id: str) -> Claim:
    """Let an agent hold a task, unless another one has it.

    Raises:
        OrchestrationError: TASK_NOT_FOUND, AGENT_NOT_FOUND or INVALID_STATE.
    """
    task = transaction.get(Task, task_id)
    workflow = transaction.get(Workflow, task.workflow_id)
    pauses.check(transaction, workflow.id)
    _check_claimable(task, workflow)
    if task.assigned_agent_id not in (None, agent_id):
        return Claim({"success": False, "already_claimed_by": task.assigned_agent_id}, wants_workspace=False)
    agent = actor(transaction, agent_id)
    check_online(agent)
    _check_for_whom(transaction, task)
    reservation = check_reserved(transaction, task, agent_id)
    if task.assigned_agent_id == agent_id:
        renew_leases(transaction, agent)
        fence = task.fence
    else:
        fence = _take(transaction, task, agent)
        if reservation is not None:
            reservations.end(transaction, reservation)
    reply = {"success": True, "fence": fence, "lease_expires_at": transaction.now + transaction.lease}
    return Claim(reply, workflow.auto_create_workspaces and task.parallel_group is not None)


def _recorded(answer: Mapped) -> Claim:
    """Return a claim as it was recorded for a request before it had two parts."""
    return Claim(answer, bool(answer.pop("wants_workspace", False)))


def _take(transaction: PlanTransaction, task: Task, agent: Agent) -> int:
    """Let an agent hold a task that is free, renew its other leases, and return the fence."""
    leases.renew_all(transaction.stored, agent.id, transaction.lease)
    lease = leases.take(transaction.stored, item(task.id), holder=agent.id, milliseconds=transaction.lease)
    if isinstance(lease, leases.Held):  # every claim ends with its lease, so this cannot be
        raise _claim_lost(transaction, task, None)
    now = transaction.now
    values = {"assigned_agent_id": agent.id, "claimed_at": now, "claimed_by": transaction.principal}
    values["fence"] = lease.fence
    transaction.change(Task, task.id, **values)
    transaction.change(Agent, agent.id, current_task_id=task.id, status="busy", last_heartbeat=now)
    transaction.emit("task:claimed", task.workflow_id, {"id": task.id, "name": task.name, **values})
    return lease.fence


def _check_claimable(task: Task, workflow: Workflow) -> None:
    """Refuse the claim of a task that is not to be worked on.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if task.status in DONE:
        text = f"task {task.id} is {task.status!r}, and can no longer be claimed"
        raise OrchestrationError("INVALID_STATE", text, "task_get_available lists what can be claimed.")
    if workflow.status in CLOSED:
        text = f"workflow {workflow.id} is {workflow.status!r}, and hands out no tasks"
        raise OrchestrationError("INVALID_STATE", text, "Take a task of another workflow.")


def _check_for_whom(transaction: PlanTransaction, task: Task) -> None:
    """Refuse what agents do to a task for people.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if HUMAN in (task.required_capabilities or ()) and not transaction.is_person:
        text = f"task {task.id} is for a person, who does it in `deepwork inbox` or on the pages; nothing was changed"
        suggestion = 'Take another task. message_send with recipient_id "person" asks your user something.'
        raise OrchestrationError("INVALID_STATE", text, suggestion)


# Whose call may change a task.


def guard(transaction: PlanTransaction, task: Task, tool: str, *, fence: int | None, agent_id: str | None) -> None:
    """Refuse a call about a task that another agent holds, or that the caller has lost.

    Args:
        transaction: The call.
        task: The task that it is about.
        tool: The tool, for the record of a coordinator's override.
        fence: The fence that the call names.
        agent_id: The agent that the call names.

    Raises:
        OrchestrationError: CLAIM_LOST, AGENT_NOT_FOUND, or INVALID_STATE where only a person may.
    """
    _check_for_whom(transaction, task)
    agent = actor(transaction, agent_id) if agent_id is not None else None
    presented = fence if fence is not None else transaction.bindings.fence(task.id, agent_id)
    is_coordinator = agent is not None and agent.role == "coordinator"
    if presented is not None and presented != task.fence:
        raise _claim_lost(transaction, task, agent)
    if presented is None and not _may_go_without_fence(task, agent, is_coordinator=is_coordinator):
        raise _claim_lost(transaction, task, agent)
    if not (transaction.is_person or is_coordinator):
        check_reserved(transaction, task, agent_id)
    if agent is not None and agent.id != task.assigned_agent_id and task.assigned_agent_id is not None:
        if not is_coordinator:
            raise _claim_lost(transaction, task, agent)
        _record_override(transaction, task, agent, tool)
    elif task.assigned_agent_id is not None:
        renew_leases(transaction, agent or transaction.get(Agent, task.assigned_agent_id))
    elif agent is not None:
        renew_leases(transaction, agent)


def _guard_release(transaction: PlanTransaction, task: Task, agent: Agent, *, fence: int | None) -> None:
    """Refuse the release of a task that the agent does not hold.

    Raises:
        OrchestrationError: NOT_CLAIMED, NOT_ASSIGNED or CLAIM_LOST.
    """
    bound = transaction.bindings.fence(task.id, agent.id)
    is_late = task.id in (agent.lost_task_ids or ()) or bound not in (None, task.fence)
    if fence is None and not is_late:
        if task.assigned_agent_id is None:
            raise OrchestrationError("NOT_CLAIMED", f"task {task.id} is not claimed", "There is nothing to release.")
        if task.assigned_agent_id != agent.id and agent.role != "coordinator":
            text = f"task {task.id} is held by agent {task.assigned_agent_id}, not by {agent.id}"
            raise OrchestrationError("NOT_ASSIGNED", text, "Only its holder or a coordinator can release it.")
    guard(transaction, task, "task_release", fence=fence, agent_id=agent.id)


def _may_go_without_fence(task: Task, agent: Agent | None, *, is_coordinator: bool) -> bool:
    if task.assigned_agent_id is None:
        return agent is None or task.id not in (agent.lost_task_ids or ())
    return agent is not None and (agent.id == task.assigned_agent_id or is_coordinator)


def _claim_lost(transaction: PlanTransaction, task: Task, agent: Agent | None) -> OrchestrationError:
    """Return the error for a call without a claim; it says who has it."""
    if task.assigned_agent_id is None:
        text = f"the claim on task {task.name!r} ({task.id}) has ended, and the task is unclaimed now"
        suggestion = "Stop working on it, or claim it again with task_claim."
    else:
        holder = transaction.get(Agent, task.assigned_agent_id)
        text = f"task {task.name!r} ({task.id}) is held by agent {holder.name!r} ({holder.id})"
        suggestion = "Stop working on it. If you are that agent, name your agent_id."
    if agent is not None and agent.lost_task_ids:
        suggestion = f"Agent {agent.id} has lost: {some(agent.lost_task_ids)}. {REVIVE}"
    return OrchestrationError("CLAIM_LOST", text, suggestion)


def _record_override(transaction: PlanTransaction, task: Task, agent: Agent, tool: str) -> None:
    summary = f"Coordinator {agent.name!r} called {tool} on a task that agent {task.assigned_agent_id} holds"
    detail = {"coordinator_id": agent.id, "holder_id": task.assigned_agent_id, "tool": tool}
    checkpoints.add(transaction, task, "decision", summary, detail=detail)
    renew_leases(transaction, agent)


# How a claim ends.


def held_by(transaction: PlanTransaction, agent_id: str) -> list[Task]:
    """Return the tasks that an agent holds without their long texts, the newest claim last."""
    return transaction.all(Task, _HELD_BY, agent_id=agent_id)


def holders(transaction: PlanTransaction) -> set[str]:
    """Return the agents that hold a task."""
    return {row.assigned_agent_id for row in transaction.rows(_HOLDERS)}


def finish(transaction: PlanTransaction, task: Task) -> Mapped:
    """End the claim of a task that is finished, and return what its row has to say; `settle` the agent after it."""
    if task.assigned_agent_id is None:
        return {}
    _end_lease(transaction, task)
    transaction.ended_task_ids.append(task.id)
    return UNCLAIMED


def settle(transaction: PlanTransaction, agent_id: str | None) -> None:
    """Write down on what an agent still works."""
    if agent_id is None:
        return
    agent, held = transaction.get(Agent, agent_id), held_by(transaction, agent_id)
    status = agent.status if held or agent.status != "busy" else "online"
    transaction.change(Agent, agent_id, status=status, current_task_id=held[-1].id if held else None)


def release(transaction: PlanTransaction, task: Task, reason: str) -> None:
    """End the claim of a task that is not finished: it is pending again, and its next holder reads why."""
    reopen(transaction, task, f"Released: {reason}")
    transaction.ended_task_ids.append(task.id)
    settle(transaction, task.assigned_agent_id)
    data = {"id": task.id, "name": task.name, "agent_id": task.assigned_agent_id}
    transaction.emit("task:released", task.workflow_id, data)


def reopen(transaction: PlanTransaction, task: Task, summary: str) -> None:
    """End the claim of a task, and make it pending again if it was begun."""
    _end_lease(transaction, task)
    is_begun = task.status in BEGUN
    reopened = transaction.change(Task, task.id, **UNCLAIMED, **({"status": "pending"} if is_begun else {}))
    if is_begun:
        detail: Mapped = {"status": task.status, "agent_id": task.assigned_agent_id}
        checkpoints.add(transaction, task, "recovery", summary, detail=detail)
        transaction.emit("task:updated", task.workflow_id, reopened.event())


def outdate(transaction: PlanTransaction, name: str) -> None:
    """End a lease that has run out. Taking it raises the fence, which shuts out its last holder."""
    lease = leases.take(transaction.stored, name, holder="nobody", milliseconds=transaction.lease)
    if isinstance(lease, leases.Lease):
        leases.end(transaction.stored, name, fence=lease.fence)


def item(task_id: str) -> str:
    """Return the name of a task's lease."""
    return CLAIMED + task_id


def _end_lease(transaction: PlanTransaction, task: Task) -> None:
    """End the lease of a task, whether it is live or has run out."""
    try:
        leases.end(transaction.stored, item(task.id), fence=task.fence or 0)
    except LeaseLost:
        outdate(transaction, item(task.id))
