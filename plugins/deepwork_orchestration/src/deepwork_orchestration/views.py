"""What people are shown of plans, agents and messages: reading functions for pages, in pages and without side effects.

Unlike the tools, they end no claim whose lease has run out, renew none, and take no lock. Every function runs in a
transaction that reads: `await (await deepwork_sql.database(context)).read(lambda transaction: plan(transaction, id))`.
Times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from deepwork_orchestration.agents import SESSION
from deepwork_orchestration.database import CLAIMED
from deepwork_orchestration.errors import not_found
from deepwork_orchestration.models import Agent, Checkpoint, Mapped, Message, Row, Task, WholeWorkflow, Workspace
from deepwork_orchestration.pauses import reason_of
from deepwork_orchestration.sql import Filters, columns, one_of, placeholders, selection, sql
from deepwork_orchestration.states import CLOSED, DONE, HUMAN
from deepwork_sql import EventFilter, Transaction
from deepwork_sql.pages import ListQuery, Rows

RowT = TypeVar("RowT", bound=Row)

MAX_NODES = 200
MAX_LISTED = 20
MAX_CHECKPOINTS = 50
# So many events of a plan are looked at for who has ended its tasks.
MAX_LOOKED_AT = 5_000
BATCH = 500

# In each query that reads tasks they are `t`.
_TASKS = "FROM orchestration_tasks AS t"
_STATUS = "CASE WHEN t.status = 'pending' AND t.open_dependencies > 0 THEN 'blocked' ELSE t.status END"
_ORDER = "t.sequence, t.name, t.number"
_IN_ORDER = f"ORDER BY {_ORDER}"
_LISTED = f't.id, t.name, {_STATUS} AS status, t.sequence, t.parallel_group AS "group", t.assigned_agent_id AS agent'
_NEEDED = "SELECT depends_on_id FROM orchestration_dependencies WHERE task_id = :task_id AND type = 'blocks'"
_WAITING = "SELECT task_id FROM orchestration_dependencies WHERE depends_on_id = :task_id AND type = 'blocks'"
# Why a person has paused a plan.
_PAUSE = "SELECT p.reason FROM orchestration_pauses AS p WHERE p.workflow_id = orchestration_workflows.id"
_PLAN = "id", "name", "status", "source_type", "source_ref", "source_content", "plan_summary"
_TASK = "id", "name", "description", "sequence", "parallel_group", "plan", "plan_summary", "context", "outcome"
_AGENT = "id", "name", "runtime", "role", "status", "capabilities", "workspace_path", "last_heartbeat", "created_at"


class TaskFilter(NamedTuple):
    """Which tasks of a plan are asked for; what is None leaves out none."""

    status: str | None = None
    agent: str | None = None
    group: str | None = None


class AgentFilter(NamedTuple):
    """Which agents are asked for."""

    status: str | None = None
    role: str | None = None
    is_online: bool = False


class MessageFilter(NamedTuple):
    """Which messages are asked for: `agent` has sent or got them."""

    agent: str | None = None
    plan: str | None = None
    thread: str | None = None
    status: str | None = None


def plans(transaction: Transaction, status: str | None, query: ListQuery) -> Rows:
    """List plans with their pauses and the counts of their tasks, the newest first."""
    filters = _with_words(Filters(), query.words, "id", "name")
    if status is not None:
        is_paused = f" OR EXISTS ({_PAUSE})" if status == "paused" else ""
        filters.add(f"(status = :status{is_paused})", status=status)
    listed = (
        f"SELECT id, name, status, created_at, updated_at, ({_PAUSE}) AS paused FROM orchestration_workflows "
        f"{filters.where()}"
    )
    page = _page(transaction, listed, "created_at DESC, number DESC", filters, query)
    counts = _task_counts(transaction, [row["id"] for row in page.rows])
    return Rows([row | {"tasks": counts.get(row["id"], {})} for row in page.rows], page.total)


def plan(transaction: Transaction, workflow_id: str) -> Mapped:
    """Return a plan with its tasks to start, failed and waiting for a person, its agents at work, and its pause.

    Raises:
        OrchestrationError: WORKFLOW_NOT_FOUND.
    """
    workflow = _one(transaction, WholeWorkflow, workflow_id)
    of_plan = "t.workflow_id = :workflow_id"
    chosen = {"workflow_id": workflow_id}
    runs = f"({one_of('t.status', ('planning', 'in_progress'))} OR t.assigned_agent_id IS NOT NULL)"
    running = _count(transaction, f"SELECT t.id {_TASKS} WHERE {of_plan} AND {runs}", chosen)
    free = f"{of_plan} AND t.status = 'pending' AND t.assigned_agent_id IS NULL AND t.open_dependencies = 0"
    open_tasks = (
        f"SELECT t.id, t.required_capabilities {_TASKS} WHERE {of_plan} AND t.required_capabilities IS NOT NULL "
        f"AND NOT {one_of('t.status', DONE)}"
    )
    human = [line["id"] for line in _rows(transaction, open_tasks, chosen) if HUMAN in line["required_capabilities"]]
    listed, ids = placeholders("id", human[:MAX_LISTED])
    holders = f"id IN (SELECT t.assigned_agent_id {_TASKS} WHERE {of_plan})"
    reason = reason_of(transaction, workflow_id)
    workspaces = "SELECT id, path, branch, status FROM orchestration_workspaces WHERE workflow_id = :workflow_id"
    return {
        **{name: getattr(workflow, name) for name in (*_PLAN, "created_at", "updated_at", "max_parallel_tasks")},
        "tasks": _task_counts(transaction, [workflow_id]).get(workflow_id, {}),
        "running": running,
        "free_slots": max(0, workflow.max_parallel_tasks - running),
        "paused": reason,
        "next_tasks": [] if reason is not None or workflow.status in CLOSED else _brief(transaction, free, chosen),
        "failed_tasks": _brief(transaction, f"{of_plan} AND t.status = 'failed'", chosen),
        "human_tasks": _brief(transaction, f"t.id IN {listed}", ids) if human else [],
        "agents": _agents(transaction, Filters().add(holders, **chosen), ListQuery(limit=MAX_NODES)).rows,
        "workspaces": _rows(transaction, f"{workspaces} ORDER BY number", chosen),
    }


def graph(transaction: Transaction, workflow_id: str) -> Mapped:
    """Return all tasks of a plan in a few columns, and pairs of positions: the first is needed by the second.

    Raises:
        OrchestrationError: WORKFLOW_NOT_FOUND.
    """
    _one(transaction, WholeWorkflow, workflow_id)
    chosen = {"workflow_id": workflow_id}
    tasks = _rows(transaction, f"SELECT {_LISTED} {_TASKS} WHERE t.workflow_id = :workflow_id {_IN_ORDER}", chosen)
    place = {task["id"]: number for number, task in enumerate(tasks)}
    edges = (
        f"SELECT d.depends_on_id, d.task_id {_TASKS} JOIN orchestration_dependencies AS d ON d.task_id = t.id "
        "WHERE t.workflow_id = :workflow_id AND d.type = 'blocks'"
    )
    pairs = transaction.rows(sql(edges), **chosen)
    return {
        "columns": ["id", "name", "status", "sequence", "group", "agent"],
        "rows": [[*task.values()] for task in tasks],
        "edges": sorted([place[needed], place[task]] for needed, task in pairs if needed in place),
        "agents": agent_names(transaction, {task["agent"] for task in tasks if task["agent"]}),
    }


def tasks(transaction: Transaction, workflow_id: str, chosen: TaskFilter, query: ListQuery) -> Rows:
    """List the tasks of a plan in their order.

    Raises:
        OrchestrationError: WORKFLOW_NOT_FOUND.
    """
    _one(transaction, WholeWorkflow, workflow_id)
    filters = Filters(workflow_id=workflow_id, assigned_agent_id=chosen.agent, parallel_group=chosen.group)
    if chosen.status is not None:
        filters.add(f"{_STATUS} = :status", status=chosen.status)
    _with_words(filters, query.words, "t.id", "t.name")
    more = "t.claimed_at, t.updated_at, t.outcome, t.error"
    listed = f"SELECT {_LISTED}, {more} {_TASKS} {filters.where()}"
    return _page(transaction, listed, _ORDER, filters, query)


def task(transaction: Transaction, task_id: str) -> Mapped:
    """Return a task with its claim, its neighbours in the graph, why it is blocked, and its newest checkpoints.

    Raises:
        OrchestrationError: TASK_NOT_FOUND.
    """
    row = _one(transaction, Task, task_id)
    workflow = _one(transaction, WholeWorkflow, row.workflow_id)
    workspace = _one(transaction, Workspace, row.workspace_id) if row.workspace_id else None
    chosen = {"task_id": task_id}
    checkpoints = f"SELECT {columns(Checkpoint)} FROM orchestration_checkpoints WHERE task_id = :task_id"
    newest = f"{checkpoints} ORDER BY sequence DESC LIMIT {MAX_CHECKPOINTS}"
    names = (*_TASK, "outcome_detail", "error", "required_capabilities", "created_at", "updated_at")
    return {
        **{name: getattr(row, name) for name in names},
        "status": row.shown_status,
        "workflow": {name: getattr(workflow, name) for name in ("id", "name", "status")},
        "workspace": workspace and {name: getattr(workspace, name) for name in ("id", "path", "branch", "status")},
        "claim": _claim(transaction, row),
        "needs": _rows(
            transaction, f"SELECT {_LISTED}, t.outcome {_TASKS} WHERE t.id IN ({_NEEDED}) {_IN_ORDER}", chosen
        ),
        "needed_by": _rows(transaction, f"SELECT {_LISTED} {_TASKS} WHERE t.id IN ({_WAITING}) {_IN_ORDER}", chosen),
        "waits_for": _waits_for(transaction, task_id, set()),
        "checkpoints": _rows(transaction, newest, chosen),
        "checkpoints_total": _count(transaction, checkpoints, chosen),
    }


def find_tasks(transaction: Transaction, query: ListQuery) -> Rows:
    """Find tasks of all plans by their ids and names, the last changed first."""
    filters = _with_words(Filters(), query.words, "t.id", "t.name")
    joined = f"{_TASKS} JOIN orchestration_workflows AS w ON w.id = t.workflow_id {filters.where()}"
    listed = f"SELECT {_LISTED}, t.updated_at, w.name AS plan_name {joined}"
    return _page(transaction, listed, "t.updated_at DESC, t.number DESC", filters, query)


def agents(transaction: Transaction, chosen: AgentFilter, query: ListQuery) -> Rows:
    """List agents with the tasks that they hold and until when, those online first."""
    filters = _with_words(Filters(status=chosen.status, role=chosen.role), query.words, "id", "name")
    if chosen.is_online:
        filters.add("status <> 'offline'")
    return _agents(transaction, filters, query)


def agent(transaction: Transaction, agent_id: str) -> Mapped:
    """Return one agent.

    Raises:
        OrchestrationError: AGENT_NOT_FOUND.
    """
    page = _agents(transaction, Filters(id=agent_id), ListQuery())
    if not page.rows:
        raise not_found(Agent.KIND, agent_id)
    return page.rows[0]


def ended_by(transaction: Transaction, workflow_id: str, task_ids: Collection[str]) -> dict[str, Mapped]:
    """Return id and name of the agent that held each of these tasks when it ended, by the id of the task.

    The events say it, and of a plan the last `MAX_LOOKED_AT` are read: a task that has ended names no holder any more.
    """
    from deepwork_sql import feed  # SQLAlchemy, which it imports, would otherwise be imported by every command

    event_filter = EventFilter("orchestration", "task:updated", workflow_id)
    missing, agent_ids = set(task_ids), dict[str, str]()
    before: str | None = None
    for _ in range(MAX_LOOKED_AT // BATCH if missing else 0):
        events = feed.read_back(transaction, before, BATCH, event_filter)
        endings = [event.data for event in events if "agent_id" in event.data and event.data["id"] in missing]
        for ending in endings:
            agent_ids.setdefault(ending["id"], ending["agent_id"])
        missing.difference_update(agent_ids)
        if len(events) < BATCH or not missing:
            break
        before = events[-1].id
    names = agent_names(transaction, {*filter(None, agent_ids.values())})
    return {task_id: {"id": by, "name": names.get(by)} for task_id, by in agent_ids.items() if by}


def agent_names(transaction: Transaction, agent_ids: Collection[str]) -> dict[str, str]:
    """Return the names of agents by their ids."""
    listed, ids = placeholders("id", agent_ids)
    query = f"SELECT id, name FROM orchestration_agents WHERE id IN {listed}"
    return dict(transaction.rows(sql(query), **ids)) if ids else {}


def messages(transaction: Transaction, chosen: MessageFilter, query: ListQuery) -> Rows:
    """List messages with the names of who has sent and got them, the newest first."""
    filters = Filters(workflow_id=chosen.plan, thread_id=chosen.thread, status=chosen.status)
    if chosen.agent is not None:
        filters.add("(sender_id = :agent OR recipient_id = :agent)", agent=chosen.agent)
    _with_words(filters, query.words, "id", "subject", "CAST(body AS TEXT)")
    listed = f"SELECT {columns(Message)} FROM orchestration_messages {filters.where()}"
    page = _page(transaction, listed, "created_at DESC, number DESC", filters, query)
    names = agent_names(
        transaction, {row[name] for row in page.rows for name in ("sender_id", "recipient_id") if row[name]}
    )
    named = ({"sender": names.get(row["sender_id"]), "recipient": names.get(row["recipient_id"])} for row in page.rows)
    return Rows([row | who for row, who in zip(page.rows, named, strict=True)], page.total)


def counts(transaction: Transaction) -> Mapped:
    """Count plans, the tasks of open plans, and agents, by status."""
    over = one_of("status", ("completed", "abandoned"))
    of_open = f"t.workflow_id IN (SELECT id FROM orchestration_workflows WHERE NOT {over})"
    by_status = {
        "plans": "SELECT status, count(*) AS total FROM orchestration_workflows GROUP BY status",
        "tasks": f"SELECT {_STATUS} AS shown, count(*) AS total {_TASKS} WHERE {of_open} GROUP BY 1",
        "agents": "SELECT status, count(*) AS total FROM orchestration_agents GROUP BY status",
    }
    return {name: dict(transaction.rows(sql(query))) for name, query in by_status.items()}


# Parts


def _agents(transaction: Transaction, filters: Filters, query: ListQuery) -> Rows:
    listed = f"SELECT {columns(Agent)} FROM orchestration_agents {filters.where()}"
    order = "CASE status WHEN 'offline' THEN 1 ELSE 0 END, last_heartbeat DESC, number"
    page = _page(transaction, listed, order, filters, query)
    found = [Agent(**row) for row in page.rows]
    ids = [agent.id for agent in found]
    held, unread = _held(transaction, ids), _unread(transaction, ids)
    shown = [
        {
            **{name: getattr(agent, name) for name in _AGENT},
            "human": agent.is_person,
            "says_human": agent.says_person,
            "tasks": held.get(agent.id, []),
            "unread": unread.get(agent.id, 0),
        }
        for agent in found
    ]
    return Rows(shown, page.total)


def _task_counts(transaction: Transaction, workflow_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    listed, ids = placeholders("id", workflow_ids)
    query = f"SELECT t.workflow_id, {_STATUS} AS shown, count(*) AS total {_TASKS} WHERE t.workflow_id IN {listed}"
    counts: dict[str, dict[str, int]] = {}
    for workflow_id, status, total in transaction.rows(sql(f"{query} GROUP BY 1, 2"), **ids) if ids else ():
        counts.setdefault(workflow_id, {})[status] = total
    return counts


def _brief(transaction: Transaction, condition: str, arguments: Mapped) -> list[Mapped]:
    query = f"SELECT {_LISTED} {_TASKS} WHERE {condition} {_IN_ORDER} LIMIT {MAX_LISTED}"
    return _rows(transaction, query, arguments)


def _claim(transaction: Transaction, task: Task) -> Mapped | None:
    if task.assigned_agent_id is None:
        return None
    agent = _one(transaction, Agent, task.assigned_agent_id)
    return {
        "agent_id": agent.id,
        "agent_name": agent.name,
        "session_id": (agent.metadata or {}).get(SESSION),
        "claimed_at": task.claimed_at,
        "lease_until": _lease_ends(transaction, [task.id]).get(task.id),
        "fence": task.fence,
    }


def _waits_for(transaction: Transaction, task_id: str, seen: set[str]) -> list[Mapped]:
    """Return the open dependencies of a task with theirs; what was shown before is not opened again."""
    root: list[Mapped] = []
    layer = {task_id: root}
    while layer and len(seen) < MAX_NODES:
        listed, ids = placeholders("id", layer)
        query = (
            f"SELECT {_LISTED}, d.task_id AS waiting {_TASKS} JOIN orchestration_dependencies AS d "
            f"ON d.depends_on_id = t.id WHERE d.task_id IN {listed} AND d.type = 'blocks' "
            f"AND NOT {one_of('t.status', DONE)} {_IN_ORDER} LIMIT {MAX_NODES}"
        )
        below: dict[str, list[Mapped]] = {}
        for node in _rows(transaction, query, ids):
            waiting, node["waits_for"] = node.pop("waiting"), []
            if len(seen) >= MAX_NODES:
                break
            layer[waiting].append(node)
            if node["id"] not in seen:
                seen.add(node["id"])
                below[node["id"]] = node["waits_for"]
        layer = below
    return root


def _held(transaction: Transaction, agent_ids: Sequence[str]) -> dict[str, list[Mapped]]:
    listed, ids = placeholders("id", agent_ids)
    query = f"SELECT {_LISTED}, t.workflow_id, t.claimed_at {_TASKS} WHERE t.assigned_agent_id IN {listed}"
    tasks = _rows(transaction, f"{query} ORDER BY t.claimed_at, t.number", ids) if ids else []
    ends = _lease_ends(transaction, [task["id"] for task in tasks])
    held: dict[str, list[Mapped]] = {}
    for task in tasks:
        more = {"plan": task.pop("workflow_id"), "lease_until": ends.get(task["id"])}
        held.setdefault(task.pop("agent"), []).append(task | more)
    return held


def _unread(transaction: Transaction, agent_ids: Sequence[str]) -> dict[str, int]:
    listed, ids = placeholders("id", agent_ids)
    query = (
        f"SELECT recipient_id, count(*) AS total FROM orchestration_messages WHERE recipient_id IN {listed} "
        "AND status = 'unread' AND (expires_at IS NULL OR expires_at > :now) GROUP BY recipient_id"
    )
    return dict(transaction.rows(sql(query), **ids, now=transaction.now)) if ids else {}


def _lease_ends(transaction: Transaction, task_ids: Sequence[str]) -> dict[str, int]:
    listed, items = placeholders("item", (CLAIMED + task_id for task_id in task_ids))
    query = f"SELECT item, expires_at FROM deepwork_leases WHERE holder IS NOT NULL AND item IN {listed}"
    ends = transaction.rows(sql(query), **items) if items else []
    return {item.removeprefix(CLAIMED): expires_at for item, expires_at in ends}


def _one(transaction: Transaction, model: type[RowT], row_id: str) -> RowT:
    row = transaction.row(selection(model), id=row_id)  # type: ignore[arg-type]  # to mypy a class is not hashable
    if row is None:
        raise not_found(model.KIND, row_id)
    return model(*row)


def _page(transaction: Transaction, listed: str, order: str, filters: Filters, query: ListQuery) -> Rows:
    """Return the page of a list that is asked for."""
    place = {"limit": query.limit, "offset": query.offset}
    rows = _rows(transaction, f"{listed} ORDER BY {order} LIMIT :limit OFFSET :offset", filters.arguments | place)
    return Rows(rows, _count(transaction, listed, filters.arguments))


def _rows(transaction: Transaction, query: str, arguments: Mapped) -> list[Mapped]:
    return [row._asdict() for row in transaction.rows(sql(query), **arguments)]


def _count(transaction: Transaction, query: str, arguments: Mapped) -> int:
    return int(transaction.row(sql(f"SELECT count(*) AS total FROM ({query}) AS listed"), **arguments).total)


def _with_words(filters: Filters, words: Iterable[str], *columns: Any) -> Filters:
    """Add that each word is in one of the columns, in any case, and as it is."""
    for number, word in enumerate(words):
        name = f"word_{number}"
        likes = (f"lower({column}) LIKE lower(:{name}) ESCAPE '/'" for column in columns)
        escaped = word.replace("/", "//").replace("%", "/%").replace("_", "/_")
        filters.add(f"({' OR '.join(likes)})", **{name: f"%{escaped}%"})
    return filters
