"""Plans of many agents, their tasks, the agents themselves and their messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from starlette.requests import Request

from deepwork_dashboard.answers import Mapped, chosen, intervention_of, iso, page_of, short
from deepwork_dashboard.dashboard import Dashboard
from deepwork_dashboard.database_views import DatabaseViews

DONE = ("completed", "skipped")
ENDED = ("completed", "failed")
_COLUMNS = ("id", "name", "status", "sequence", "group", "agent")


class Plans(DatabaseViews):
    """The endpoints below `api/plans`, `api/tasks`, `api/agents` and `api/messages`."""

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__(dashboard, "orchestration", "deepwork_orchestration.views")

    async def plans(self, request: Request) -> Mapped:
        """List plans, the newest first."""
        return await self.list_plans(request.query_params.get("status"), **page_of(request))

    async def list_plans(self, status: str | None = None, **asked: Any) -> Mapped:
        """List plans of a status, or all."""
        return await self.listed("plans", _plan, asked, status)

    async def plan(self, request: Request) -> Mapped:
        """Show a plan."""
        plan = await self.read("plan", request.path_params["plan"])
        lists = {name: [_brief(task) for task in plan[name]] for name in ("next_tasks", "failed_tasks", "human_tasks")}
        names = ("source_type", "source_ref", "source_content", "plan_summary", "max_parallel_tasks", "running")
        return {
            **_plan(plan),
            **chosen(plan, *names, "free_slots", "workspaces"),
            **lists,
            "agents": [_agent(agent) for agent in plan["agents"]],
        }

    async def intervene(self, request: Request) -> Mapped:
        """Pause a plan, or let it go on, in the name of who has logged in."""
        action, text = await intervention_of(request, "pause", "unpause")
        plan_id, by = request.path_params["plan"], request.state.answerer
        await self.read("plan", plan_id)
        people = await self._dashboard.module("orchestration", "deepwork_orchestration.interventions")
        context = self._dashboard.demand("orchestration")
        if action == "pause":
            await people.pause(context, by, plan_id, text)
            return {"done": "The plan is paused: none of its tasks is handed out, and agents that hold one are told"}
        await people.unpause(context, by, plan_id, text or None)
        return {"done": "The plan goes on"}

    async def graph(self, request: Request) -> Mapped:
        """Show all tasks of a plan in few bytes."""
        graph: Mapped = await self.read("graph", request.path_params["plan"])
        return graph

    async def tasks(self, request: Request) -> Mapped:
        """List the tasks of a plan."""
        filters = (await self.views()).TaskFilter(**chosen(request.query_params, "status", "agent", "group"))
        return await self.listed("tasks", _task, page_of(request), request.path_params["plan"], filters)

    async def task(self, request: Request) -> Mapped:
        """Show a task, and why it waits."""
        task = await self.read("task", request.path_params["task"])
        names = ("id", "name", "description", "status", "sequence", "plan_summary", "context", "outcome", "error")
        plan, required = task["workflow"], task["required_capabilities"]
        holders = await self.read("ended_by", plan["id"], [task["id"]]) if task["status"] in ENDED else {}
        holder = holders.get(task["id"])
        return {
            **chosen(task, *names, "outcome_detail", "required_capabilities", "workspace", "checkpoints_total"),
            "thing": f"task:{task['id']}",
            "plan": {**plan, "thing": f"plan:{plan['id']}"},
            "plan_detail": task["plan"],
            "group": task["parallel_group"],
            "for_person": "human" in (required or ()),
            "created_at": iso(task["created_at"]),
            "updated_at": iso(task["updated_at"]),
            "claim": _claim(task["claim"]),
            "ended_by": _named_agent(holder["id"], holder["name"]) if holder else None,
            "needs": [_brief(needed) | {"outcome": short(needed["outcome"])} for needed in task["needs"]],
            "needed_by": [_brief(waiting) for waiting in task["needed_by"]],
            "waits_for": [_node(node) for node in task["waits_for"]],
            "checkpoints": [_checkpoint(checkpoint) for checkpoint in task["checkpoints"]],
        }

    async def agents(self, request: Request) -> Mapped:
        """List agents, those online first."""
        return await self.list_agents(chosen(request.query_params, "status", "role"), **page_of(request))

    async def list_agents(self, filters: Mapped, **asked: Any) -> Mapped:
        """List agents that fit."""
        return await self.listed("agents", _agent, asked, (await self.views()).AgentFilter(**filters))

    async def agent(self, request: Request) -> Mapped:
        """Show an agent."""
        return _agent(await self.read("agent", request.path_params["agent"]))

    async def messages(self, request: Request) -> Mapped:
        """List messages, the newest first."""
        names = ("agent", "plan", "thread", "status")
        filters = (await self.views()).MessageFilter(**chosen(request.query_params, *names))
        return await self.listed("messages", _message, page_of(request), filters)

    async def agent_names(self, agent_ids: Collection[str]) -> Mapped:
        """Return the names of agents by their ids."""
        if not agent_ids or not self._dashboard.context.has("orchestration"):
            return {}
        names: Mapped = await self.read("agent_names", agent_ids)
        return names

    async def counts(self) -> Mapped:
        """Count plans, tasks and agents by their status."""
        return await self.counted("counts")

    async def find_tasks(self, **asked: Any) -> Mapped:
        """Find tasks of all plans."""
        return await self.listed("find_tasks", _found, asked)


def _plan(row: Mapped) -> Mapped:
    tasks = row["tasks"]
    return {
        **chosen(row, "id", "name", "status", "paused"),
        "thing": f"plan:{row['id']}",
        "created_at": iso(row["created_at"]),
        "updated_at": iso(row["updated_at"]),
        "tasks": tasks,
        "total": sum(tasks.values()),
        "done": sum(tasks.get(status, 0) for status in DONE),
    }


def _brief(row: Mapped) -> Mapped:
    return {**chosen(row, *_COLUMNS), "thing": f"task:{row['id']}"}


def _task(row: Mapped) -> Mapped:
    return {
        **_brief(row),
        "claimed_at": iso(row["claimed_at"]),
        "updated_at": iso(row["updated_at"]),
        "outcome": short(row["outcome"]),
        "error": short(row["error"]),
    }


def _found(row: Mapped) -> Mapped:
    return {**_brief(row), "plan_name": row["plan_name"], "updated_at": iso(row["updated_at"])}


def _node(node: Mapped) -> Mapped:
    return {**_brief(node), "waits_for": [_node(below) for below in node["waits_for"]]}


def _claim(claim: Mapped | None) -> Mapped | None:
    if claim is None:
        return None
    agent = _named_agent(claim["agent_id"], claim["agent_name"])
    times = {name: iso(claim[name]) for name in ("claimed_at", "lease_until")}
    session = f"session:{claim['session_id']}" if isinstance(claim["session_id"], str) else None
    return {"agent": agent, "session": session, **times, "fence": claim["fence"]}


def _named_agent(agent_id: str | None, name: str | None) -> Mapped | None:
    return {"id": agent_id, "thing": f"agent:{agent_id}", "name": name} if agent_id else None


def _checkpoint(row: Mapped) -> Mapped:
    shown = chosen(row, "id", "sequence", "summary", "detail", "files_changed")
    return {**shown, "type": row["checkpoint_type"], "at": iso(row["created_at"])}


def _agent(row: Mapped) -> Mapped:
    tasks: Iterable[Mapped] = row["tasks"]
    ends = [task["lease_until"] for task in tasks if task["lease_until"]]
    names = ("id", "name", "runtime", "role", "status", "human", "says_human", "capabilities", "workspace_path")
    return {
        **chosen(row, *names, "unread"),
        "thing": f"agent:{row['id']}",
        "last_heartbeat": iso(row["last_heartbeat"]),
        "lease_until": iso(min(ends, default=None)),
        "created_at": iso(row["created_at"]),
        "tasks": [
            {
                **_brief(task),
                "plan": task["plan"],
                "claimed_at": iso(task["claimed_at"]),
                "lease_until": iso(task["lease_until"]),
            }
            for task in tasks
        ],
    }


def _message(row: Mapped) -> Mapped:
    return {
        **chosen(row, "id", "subject", "body", "priority", "status", "thread_id"),
        "from": _named_agent(row["sender_id"], row["sender"]),
        "to": _named_agent(row["recipient_id"], row["recipient"]),
        "type": row["message_type"],
        "plan": row["workflow_id"],
        "task": row["task_id"],
        "reply_to": row["reply_to_id"],
        "at": iso(row["created_at"]),
        "read_at": iso(row["read_at"]),
    }
