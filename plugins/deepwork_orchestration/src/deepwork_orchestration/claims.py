"""Claims: who holds a task, whose call may change it, and how a claim ends.

A claim is a lease with a fence in the database. What a task says of its holder is right at any moment of a transaction,
because every call first ends the claims whose lease has run out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepwork_orchestration.errors import OrchestrationError, some
from deepwork_orchestration.models import Agent, Mapped, Task, Workflow
from deepwork_orchestration.states import BEGUN, CLOSED, DONE, HUMAN

if TYPE_CHECKING:
    from deepwork_orchestration.act import Act
    from deepwork_sql.leases import Lease

PREFIX = "orchestration/task/"
# A lease of its own: nobody has begun, so it ends no claim and makes nobody offline when it runs out.
RESERVED = "orchestration/reserved/"
REVIVE = 'Call agent_update with status "online", then claim anew what you want to go on with.'
_BATCH = 200
# An agent is told of so many of the tasks that it has lost: the last that it has claimed.
MAX_LOST = 1000
# What the row of a task says when nobody holds it.
UNCLAIMED: Mapped = {"assigned_agent_id": None, "claimed_at": None, "claimed_by": None, "fence": None}


def item(task_id: str) -> str:
    """Name the lease of a task."""
    return PREFIX + task_id


def _reservation(task_id: str) -> str:
    return RESERVED + task_id


def overdue(act: Act) -> bool:
    """Say whether a lease has run out whose claim nobody has ended yet."""
    from deepwork_sql import leases

    return bool(leases.expired(act.transaction, PREFIX, 1))


# How a claim begins and lasts.


def take(act: Act, task: Task, agent: Agent) -> Lease:
    """Give a task that nobody holds to an agent."""
    from deepwork_sql import leases

    lease = leases.take(act.transaction, item(task.id), holder=agent.id, milliseconds=act.lease)
    if isinstance(lease, leases.Held):  # every claim ends with its lease, so this cannot be
        raise claim_lost(act, task, None)
    unreserve(act, task.id)
    values = {"assigned_agent_id": agent.id, "claimed_at": act.now, "claimed_by": act.principal, "fence": lease.fence}
    act.records.change(Task, task.id, **values)
    act.records.change(Agent, agent.id, current_task_id=task.id, status="busy", last_heartbeat=act.now)
    act.emit("task:claimed", task.workflow_id, {"id": task.id, "name": task.name, **values})
    return lease


def beat(act: Act, agent: Agent) -> None:
    """Renew the leases of an agent that calls; one that is offline has none."""
    from deepwork_sql import leases

    if agent.status != "offline":
        leases.renew_all(act.transaction, agent.id, act.lease)
        act.records.change(Agent, agent.id, last_heartbeat=act.now)


def notice(act: Act, agent_id: str) -> None:
    """Note in a call that only reads that an agent lives. Its leases are renewed afterwards if a part of them is used.

    Raises:
        OrchestrationError: AGENT_NOT_FOUND.
    """
    from deepwork_sql import leases

    act.records.agent(agent_id)
    held = leases.of_holder(act.transaction, agent_id)
    if any(lease.expires_at - act.now < 0.9 * act.lease for lease in held):
        act.beating_agent_ids.append(agent_id)


def notice_binding(act: Act, task: Task) -> None:
    """Note in a call that only reads that it comes over the binding of a claim."""
    agent_id = _bound_agent_id(act, task)
    if agent_id is not None:
        notice(act, agent_id)


def beat_binding(act: Act, task: Task) -> None:
    """Renew the leases of the agent over the binding of whose claim a call comes."""
    agent_id = _bound_agent_id(act, task)
    if agent_id is not None:
        beat(act, act.records.agent(agent_id))


def _bound_agent_id(act: Act, task: Task) -> str | None:
    fence = act.bindings.fence(task.id)
    return task.assigned_agent_id if fence is not None and fence == task.fence else None


# Whose call may change a task.


def actor(act: Act, agent_id: str, kind: str = "agent") -> Agent:
    """Return the agent in whose name a call acts.

    Raises:
        OrchestrationError: AGENT_NOT_FOUND; INVALID_STATE for one that stands for a person, if no person acts.
    """
    agent = act.records.agent(agent_id, kind)
    if agent.is_person and not act.is_person:
        text = f"agent {agent_id} stands for a person, and no tool acts for people"
        raise OrchestrationError("INVALID_STATE", text, "Name the id that agent_register has given you.")
    return agent


def check_for_whom(act: Act, task: Task) -> None:
    """Refuse what anybody but a person does to a task for people.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if HUMAN in (task.required_capabilities or ()) and not act.is_person:
        text = f"task {task.id} is for a person, who does it in `deepwork inbox` or on the pages; nothing was changed"
        suggestion = 'Take another task. message_send with recipient_id "person" asks your user something.'
        raise OrchestrationError("INVALID_STATE", text, suggestion)


# A task that a person has reserved for one agent.


def reserve(act: Act, task: Task, agent: Agent) -> int:
    """Let one agent alone claim a task for the time of a lease, and return until when."""
    from deepwork_sql import leases

    unreserve(act, task.id)
    # The holder is not the agent itself, whose calls renew all its leases.
    leases.take(act.transaction, _reservation(task.id), holder=RESERVED + agent.id, milliseconds=act.lease)
    return act.now + act.lease


def unreserve(act: Act, task_id: str) -> None:
    """Let everybody claim a task again."""
    from deepwork_sql import leases

    lease = leases.holder_of(act.transaction, _reservation(task_id))
    if lease is not None:
        leases.end(act.transaction, lease.item, fence=lease.fence)


def reservations(act: Act) -> dict[str, str]:
    """Return, by the ids of the tasks that are reserved now, the agents that alone may claim them."""
    from deepwork_sql import leases

    live = leases.live(act.transaction, RESERVED)
    return {lease.item.removeprefix(RESERVED): lease.holder.removeprefix(RESERVED) for lease in live}


def check_reserved(act: Act, task: Task, agent_id: str | None) -> None:
    """Refuse what an agent does to a task that nobody holds and that a person has reserved for another.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    reserved = reservations(act).get(task.id) if task.assigned_agent_id is None else None
    if reserved not in (None, agent_id):
        text = f"task {task.id} is reserved for agent {reserved}, which a person has chosen; nothing was changed"
        raise OrchestrationError("INVALID_STATE", text, "Take another task, or this one once its time is over.")


def guard(act: Act, task: Task, tool: str, *, fence: int | None, agent_id: str | None) -> None:
    """Refuse a call about a task that somebody else holds, or that the caller has lost.

    Args:
        act: The call.
        task: The task that it is about.
        tool: The tool, for the record of a coordinator's override.
        fence: The fence that the call names.
        agent_id: The agent that the call names.

    Raises:
        OrchestrationError: CLAIM_LOST, AGENT_NOT_FOUND, or INVALID_STATE where only a person may.
    """
    check_for_whom(act, task)
    agent = actor(act, agent_id) if agent_id is not None else None
    presented = fence if fence is not None else act.bindings.fence(task.id, agent_id)
    is_coordinator = agent is not None and agent.role == "coordinator"
    if presented is not None and presented != task.fence:
        raise claim_lost(act, task, agent)
    if presented is None and not _may_go_without_fence(task, agent, is_coordinator=is_coordinator):
        raise claim_lost(act, task, agent)
    if not (act.is_person or is_coordinator):
        check_reserved(act, task, agent_id)
    if agent is not None and agent.id != task.assigned_agent_id and task.assigned_agent_id is not None:
        if not is_coordinator:
            raise claim_lost(act, task, agent)
        _record_override(act, task, agent, tool)
    elif task.assigned_agent_id is not None:
        beat(act, agent or act.records.agent(task.assigned_agent_id))
    elif agent is not None:
        beat(act, agent)


def guard_release(act: Act, task: Task, agent: Agent, *, fence: int | None) -> None:
    """Refuse the release of a task that the agent does not hold.

    Raises:
        OrchestrationError: NOT_CLAIMED, NOT_ASSIGNED or CLAIM_LOST.
    """
    is_late = task.id in (agent.lost_task_ids or ()) or act.bindings.fence(task.id, agent.id) not in (None, task.fence)
    if fence is None and not is_late:
        if task.assigned_agent_id is None:
            raise OrchestrationError("NOT_CLAIMED", f"nobody holds task {task.id}", "There is nothing to release.")
        if task.assigned_agent_id != agent.id and agent.role != "coordinator":
            text = f"task {task.id} is held by agent {task.assigned_agent_id}, not by {agent.id}"
            raise OrchestrationError("NOT_ASSIGNED", text, "Only its holder or a coordinator can release it.")
    guard(act, task, "task_release", fence=fence, agent_id=agent.id)


def check_claimable(task: Task, workflow: Workflow) -> None:
    """Refuse the claim of a task that nobody may work on.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if task.status in DONE:
        text = f"task {task.id} is {task.status!r}, and can no longer be claimed"
        raise OrchestrationError("INVALID_STATE", text, "task_get_available lists what can be claimed.")
    if workflow.status in CLOSED:
        text = f"workflow {workflow.id} is {workflow.status!r}, and hands out no tasks"
        raise OrchestrationError("INVALID_STATE", text, "Take a task of another workflow.")


def _may_go_without_fence(task: Task, agent: Agent | None, *, is_coordinator: bool) -> bool:
    if task.assigned_agent_id is None:
        return agent is None or task.id not in (agent.lost_task_ids or ())
    return agent is not None and (agent.id == task.assigned_agent_id or is_coordinator)


def claim_lost(act: Act, task: Task, agent: Agent | None) -> OrchestrationError:
    """Make the error for a call without a claim; it says who has it."""
    if task.assigned_agent_id is None:
        text = f"the claim on task {task.name!r} ({task.id}) has ended, and nobody holds it now"
        suggestion = "Stop working on it, or claim it again with task_claim."
    else:
        holder = act.records.agent(task.assigned_agent_id)
        text = f"task {task.name!r} ({task.id}) is held by agent {holder.name!r} ({holder.id})"
        suggestion = "Stop working on it. If you are that agent, name your agent_id."
    if agent is not None and agent.lost_task_ids:
        suggestion = f"Agent {agent.id} has lost: {some(agent.lost_task_ids)}. {REVIVE}"
    return OrchestrationError("CLAIM_LOST", text, suggestion)


def _record_override(act: Act, task: Task, agent: Agent, tool: str) -> None:
    from deepwork_orchestration import checkpoints

    summary = f"Coordinator {agent.name!r} called {tool} on a task that agent {task.assigned_agent_id} holds"
    detail = {"coordinator_id": agent.id, "holder_id": task.assigned_agent_id, "tool": tool}
    checkpoints.add(act, task, "decision", summary, detail=detail)
    beat(act, agent)


# How a claim ends.


def finish(act: Act, task: Task) -> Mapped:
    """End the claim of a task that is finished, and give what its row has to say then; `settle` the agent after it."""
    if task.assigned_agent_id is None:
        return {}
    _end_lease(act, task)
    act.ended_task_ids.append(task.id)
    return UNCLAIMED


def settle(act: Act, agent_id: str | None) -> None:
    """Say of an agent what it still works on."""
    if agent_id is None:
        return
    agent, held = act.records.agent(agent_id), act.records.held_by(agent_id)
    status = agent.status if held or agent.status != "busy" else "online"
    act.records.change(Agent, agent_id, status=status, current_task_id=held[-1].id if held else None)


def release(act: Act, task: Task, reason: str) -> None:
    """End the claim of a task that is not finished: it is pending again, and whoever takes it reads why."""
    _reopen(act, task, f"Released: {reason}")
    act.ended_task_ids.append(task.id)
    settle(act, task.assigned_agent_id)
    act.emit("task:released", task.workflow_id, {"id": task.id, "name": task.name, "agent_id": task.assigned_agent_id})


def release_all(act: Act, agent: Agent, reason: str) -> list[str]:
    """End all claims of an agent, and give the tasks."""
    held = act.records.held_by(agent.id)
    for task in held:
        release(act, task, reason)
    return [task.id for task in held]


def take_offline(act: Act, agent: Agent, reason: str) -> list[str]:
    """Make an agent offline, end its claims, and give their tasks."""
    task_ids = release_all(act, agent, reason)
    act.records.change(Agent, agent.id, status="offline", current_task_id=None)
    if agent.status != "offline":
        act.emit("agent:offline", None, {"id": agent.id, "name": agent.name, "task_ids": task_ids})
    return task_ids


def reap(act: Act) -> None:
    """End all claims whose lease has run out. Every call does this first, if there are any."""
    from deepwork_sql import leases

    while expired := leases.expired(act.transaction, PREFIX, _BATCH):
        for lease in expired:
            _outdate(act, lease.item)
        for agent_id in dict.fromkeys(lease.holder for lease in expired):
            _lose(act, act.records.agent(agent_id))


def _lose(act: Act, agent: Agent) -> None:
    """End the claims of an agent that has not been heard of, and tell the coordinators."""
    lost = act.records.held_by(agent.id)
    for task in lost:
        _reopen(act, task, f"The lease of agent {agent.name!r} ({agent.id}) ran out")
        data = {"id": task.id, "name": task.name, "agent_id": agent.id}
        act.emit("task:lost", task.workflow_id, data)
    task_ids = [task.id for task in lost]
    noted = task_ids[-MAX_LOST:]
    act.records.change(Agent, agent.id, status="offline", current_task_id=None, lost_task_ids=noted)
    act.emit("agent:offline", None, {"id": agent.id, "name": agent.name, "task_ids": task_ids})
    _tell_coordinators(act, agent, lost)


def _tell_coordinators(act: Act, agent: Agent, lost: list[Task]) -> None:
    from deepwork_orchestration import messages

    names = some([f"{task.name!r} ({task.id})" for task in lost])
    for coordinator_id in act.records.agent_ids(statuses=["online", "busy"], role="coordinator"):
        messages.deliver(
            act,
            recipient_id=coordinator_id,
            message_type="notification",
            subject=f"Agent {agent.name} lost its claims",
            body=f"Agent {agent.name!r} ({agent.id}) was not heard of in time and is offline. Free again: {names}.",
            priority="high",
            workflow_id=lost[0].workflow_id if lost else None,
            task_id=lost[0].id if lost else None,
        )


def _reopen(act: Act, task: Task, summary: str) -> None:
    """End the claim of a task, and make it pending again if it was begun."""
    from deepwork_orchestration import checkpoints

    _end_lease(act, task)
    is_begun = task.status in BEGUN
    reopened = act.records.change(Task, task.id, **UNCLAIMED, **({"status": "pending"} if is_begun else {}))
    if is_begun:
        detail: Mapped = {"status": task.status, "agent_id": task.assigned_agent_id}
        checkpoints.add(act, task, "recovery", summary, detail=detail)
        act.emit("task:updated", task.workflow_id, reopened.event())


def _end_lease(act: Act, task: Task) -> None:
    """End the lease of a task, whether it is live or has run out."""
    from deepwork_sql import LeaseLost, leases

    try:
        leases.end(act.transaction, item(task.id), fence=task.fence or 0)
    except LeaseLost:
        _outdate(act, item(task.id))


def _outdate(act: Act, name: str) -> None:
    """End a lease that has run out. Taking it raises the fence, which shuts out its last holder."""
    from deepwork_sql import leases

    lease = leases.take(act.transaction, name, holder="nobody", milliseconds=act.lease)
    if isinstance(lease, leases.Lease):
        leases.end(act.transaction, name, fence=lease.fence)
