"""The tools about agents, and what they hold."""

from __future__ import annotations

from itertools import islice
from typing import Any, Literal

from deepwork_orchestration import claims
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import KEEP, AgentName, Fence, Id, Limit, Object, Role, Runtime, Text, Texts
from deepwork_orchestration.errors import OrchestrationError, invalid_input, some
from deepwork_orchestration.limits import fitting, omitted
from deepwork_orchestration.models import Agent, Mapped
from deepwork_orchestration.repositories import normalized
from deepwork_orchestration.states import HUMAN, PERSON, AgentStatus

MAX_HEARTBEAT_MS = 30_000


def agent_register(
    act: Act,
    name: AgentName,
    runtime: Runtime,
    role: Role = "worker",
    capabilities: Texts | None = None,
    workspace_path: Text | None = None,
    metadata: Object | None = None,
) -> Mapped:
    """Register an agent, once at its start."""
    if name.startswith(PERSON):
        raise invalid_input("name", f"{name!r} is a name of a person", "Choose one that tells what you do.")
    agent_id = act.records.add(
        Agent,
        name=name,
        runtime=runtime,
        role=role,
        status="online",
        capabilities=capabilities,
        workspace_path=_place(workspace_path),
        metadata=metadata,
        last_heartbeat=act.now,
        principal=act.principal,
    ).id
    act.emit("agent:registered", None, {"id": agent_id, "name": name, "runtime": runtime, "role": role})
    return {"id": agent_id, "name": name, "status": "online"}


def agent_heartbeat(
    act: Act,
    agent_id: Id,
    current_task_id: Id | None = None,
    status: Literal["online", "busy"] | None = None,
) -> Mapped:
    """Keep an agent online and its claims alive. Any call that names the agent does too."""
    agent = claims.actor(act, agent_id)
    check_online(agent)
    values: Mapped = {} if status is None else {"status": status}
    if current_task_id is not None:
        values["current_task_id"] = act.records.task(current_task_id).id
    claims.beat(act, agent)
    if values:
        act.records.change(Agent, agent_id, **values)
    return {"success": True, "next_heartbeat_ms": min(act.lease // 3, MAX_HEARTBEAT_MS)}


def agent_update(
    act: Act,
    id: Id,  # noqa: A002
    status: AgentStatus | None = None,
    current_task_id: Id | None = KEEP,
    workspace_path: Text | None = None,
    metadata: Object | None = None,
) -> Mapped:
    """Change an agent; online brings one back that was lost. metadata is merged."""
    agent = claims.actor(act, id)
    values: Mapped = {}
    if current_task_id is not KEEP:
        values["current_task_id"] = act.records.task(current_task_id).id if current_task_id is not None else None
    if workspace_path is not None:
        values["workspace_path"] = _place(workspace_path)
    if metadata is not None:
        values["metadata"] = {**(agent.metadata or {}), **metadata}
    if status == "offline":
        claims.take_offline(act, agent, "the agent was set offline")
        values.pop("current_task_id", None)
    elif status is not None:
        values |= {"status": status, "lost_task_ids": None, "last_heartbeat": act.now}
    claims.beat(act, agent)
    act.emit("agent:updated", None, _event(act.records.change(Agent, id, **values)))
    return {"success": True}


def agent_get(act: Act, id: Id) -> Mapped:  # noqa: A002
    """Get an agent."""
    return act.records.agent(id).reply()


def agent_list(
    act: Act, status: list[AgentStatus] | None = None, role: Role | None = None, runtime: Text | None = None
) -> Mapped:
    """List agents, online and offline, oldest first."""
    agents, left_out = act.records.agents(statuses=status, role=role, runtime=runtime)
    return {"agents": [agent.reply() for agent in agents], **omitted("agents", left_out)}


def agent_unregister(act: Act, id: Id) -> Mapped:  # noqa: A002
    """Sign an agent off; its unfinished tasks are pending again."""
    released = claims.take_offline(act, claims.actor(act, id), "the agent has signed off")
    return {"success": True, "tasks_released": len(released)}


def task_release(act: Act, task_id: Id, agent_id: Id, reason: Text | None = None, fence: Fence | None = None) -> Mapped:
    """Give a claimed task back; it is pending again."""
    task, agent = act.records.task(task_id), claims.actor(act, agent_id)
    claims.guard_release(act, task, agent, fence=fence)
    claims.release(act, task, reason or f"by agent {agent.name!r}")
    return {"success": True}


def task_get_available(act: Act, agent_id: Id, workflow_id: Id | None = None, limit: Limit = 20) -> Mapped:
    """List the tasks that this agent may claim now."""
    agent = act.records.agent(agent_id)
    if workflow_id is not None:
        act.records.workflow(workflow_id)
    claims.notice(act, agent_id)
    reserved = claims.reservations(act)
    # What is reserved for the agent is offered to it whatever it can do: a person has chosen it.
    offered = (
        line
        for line in act.records.available(workflow_id, 2 * limit)
        if (reserved[line.id] == agent_id if line.id in reserved else fits(line, agent))
    )
    suitable = [*islice(offered, limit)]
    count = fitting([line.size for line in suitable])
    tasks = [act.records.task(line.id).reply() for line in suitable[:count]]
    return {"tasks": tasks, **omitted("tasks", len(suitable) - count)}


def fits(task: Any, agent: Agent) -> bool:
    """Say whether an agent is offered a task: people alone get what only they can do."""
    required = set(task.required_capabilities or ())
    if HUMAN in required and not agent.is_person:
        return False
    return not agent.capabilities or required - {HUMAN} <= set(agent.capabilities)


def claim(act: Act, task_id: str, agent_id: str) -> Mapped:
    """Give a task to an agent, or say who has it.

    Raises:
        OrchestrationError: TASK_NOT_FOUND, AGENT_NOT_FOUND or INVALID_STATE.
    """
    task = act.records.task(task_id)
    workflow = act.records.workflow(task.workflow_id)
    claims.check_claimable(task, workflow)
    if task.assigned_agent_id not in (None, agent_id):
        return {"success": False, "already_claimed_by": task.assigned_agent_id}
    agent = claims.actor(act, agent_id)
    check_online(agent)
    claims.check_for_whom(act, task)
    claims.check_reserved(act, task, agent_id)
    claims.beat(act, agent)
    fence = task.fence if task.assigned_agent_id == agent_id else claims.take(act, task, agent).fence
    wants_workspace = workflow.auto_create_workspaces and task.parallel_group is not None
    return {
        "success": True,
        "fence": fence,
        "lease_expires_at": act.now + act.lease,
        **({"wants_workspace": True} if wants_workspace else {}),
    }


def person(act: Act, principal: str) -> Agent:
    """Find the agent that stands for a person, or make it."""
    known = next((agent for agent in act.records.people() if agent.principal == principal), None)
    if known is None:
        values: Mapped = {"name": principal, "runtime": "custom", "role": "worker"}
        known = act.records.add(
            Agent,
            **values,
            status="online",
            capabilities=None,
            workspace_path=None,
            metadata={HUMAN: True},
            last_heartbeat=act.now,
            principal=principal,
        )
        act.emit("agent:registered", None, {"id": known.id, **values})
    elif known.status == "offline":
        known = act.records.change(Agent, known.id, status="online", lost_task_ids=None, last_heartbeat=act.now)
        act.emit("agent:updated", None, _event(known))
    return known


def check_online(agent: Agent) -> None:
    """Refuse the heartbeats and claims of an agent that is offline.

    Raises:
        OrchestrationError: INVALID_STATE; it names the tasks that the agent has lost.
    """
    if agent.status == "offline":
        lost = agent.lost_task_ids or []
        text = f"; it was not heard of in time and has lost: {some(lost)}" if lost else ""
        raise OrchestrationError("INVALID_STATE", f"agent {agent.id} is offline{text}", claims.REVIVE)


def _place(workspace_path: str | None) -> str | None:
    return None if workspace_path is None else normalized(workspace_path, "workspace_path")


def _event(agent: Agent) -> dict[str, Any]:
    names = ("id", "name", "runtime", "role", "status", "current_task_id", "last_heartbeat")
    return {name: getattr(agent, name) for name in names}
