"""What people are shown of plans, agents and messages: reading functions for pages, in pages and without side effects.

Unlike the tools, they end no claim whose lease has run out, renew none, and take no lock. Every function runs in a
transaction that reads: `await (await deepwork_sql.database(context)).read(lambda transaction: plan(transaction, id))`.
Times are in milliseconds. Imported at the first call only, because SQLAlchemy is large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from deepwork_orchestration import tables as t
from deepwork_orchestration.claims import PREFIX
from deepwork_orchestration.errors import not_found
from deepwork_orchestration.models import Mapped
from deepwork_orchestration.states import CLOSED, DONE, HUMAN, PERSON
from deepwork_sql import Transaction
from deepwork_sql.tables import leases

MAX_NODES = 200
MAX_LISTED = 20
MAX_CHECKPOINTS = 50

Condition = sa.ColumnElement[bool]

_W, _K, _A, _M = t.workflows.c, t.tasks.c, t.agents.c, t.messages.c
_IS_BLOCKED = sa.and_(_K.status == "pending", _K.open_dependencies > 0)
_SHOWN_STATUS = sa.case((_IS_BLOCKED, "blocked"), else_=_K.status).label("status")
_BLOCKS = t.dependencies.c.type == "blocks"
_IN_ORDER = (_K.sequence, _K.name, _K.number)
_LISTED = (
    _K.id,
    _K.name,
    _SHOWN_STATUS,
    _K.sequence,
    _K.parallel_group.label("group"),
    _K.assigned_agent_id.label("agent"),
)


class Rows(NamedTuple):
    """One page of a list, and how long the whole list is."""

    rows: list[Mapped]
    total: int


def plans(
    transaction: Transaction, *, status: str | None = None, words: Sequence[str] = (), limit: int = 50, offset: int = 0
) -> Rows:
    """List plans with the counts of their tasks, the newest first."""
    columns = (_W.id, _W.name, _W.status, _W.created_at, _W.updated_at)
    conditions = [*_has_words(words, _W.id, _W.name), *_equal((_W.status, status))]
    query = sa.select(*columns).where(*conditions)
    found = _page(transaction, query, (_W.created_at.desc(), _W.number.desc()), limit, offset)
    counts = _task_counts(transaction, [row["id"] for row in found.rows])
    return Rows([row | {"tasks": counts.get(row["id"], {})} for row in found.rows], found.total)


def plan(transaction: Transaction, workflow_id: str) -> Mapped:
    """Give a plan with what can be started, what has failed, what waits for a person, and who works on it.

    Raises:
        OrchestrationError: WORKFLOW_NOT_FOUND.
    """
    row = _one(transaction, t.workflows, "workflow", workflow_id)
    names = ("id", "name", "status", "source_type", "source_ref", "source_content", "plan_summary")
    times = ("created_at", "updated_at", "max_parallel_tasks")
    of_plan = _K.workflow_id == workflow_id
    is_free = sa.and_(_K.assigned_agent_id.is_(None), _K.open_dependencies == 0)
    runs = sa.or_(_K.status.in_(("planning", "in_progress")), _K.assigned_agent_id.is_not(None))
    running = _count(transaction, sa.select(_K.id).where(of_plan, runs))
    startable = [] if row["status"] in CLOSED else _brief(transaction, of_plan, _K.status == "pending", is_free)
    open_tasks = sa.select(_K.id, _K.required_capabilities).where(
        of_plan, _K.status.not_in(DONE), _K.required_capabilities.is_not(None)
    )
    human = [line.id for line in transaction.execute(open_tasks) if HUMAN in (line.required_capabilities or ())]
    holders = sa.select(_K.assigned_agent_id).where(of_plan, _K.assigned_agent_id.is_not(None))
    workspaces = sa.select(*(t.workspaces.c[name] for name in ("id", "path", "branch", "status")))
    return {
        **{name: row[name] for name in (*names, *times)},
        "tasks": _task_counts(transaction, [workflow_id]).get(workflow_id, {}),
        "running": running,
        "free_slots": max(0, row["max_parallel_tasks"] - running),
        "next_tasks": startable,
        "failed_tasks": _brief(transaction, of_plan, _K.status == "failed"),
        "human_tasks": _brief(transaction, _K.id.in_(human[:MAX_LISTED])) if human else [],
        "agents": agents(transaction, conditions=[_A.id.in_(holders)], limit=MAX_NODES).rows,
        "workspaces": _rows(
            transaction, workspaces.where(t.workspaces.c.workflow_id == workflow_id).order_by(t.workspaces.c.number)
        ),
    }


def graph(transaction: Transaction, workflow_id: str) -> Mapped:
    """Give all tasks of a plan in a few columns, and pairs of positions: the first is needed by the second.

    Raises:
        OrchestrationError: WORKFLOW_NOT_FOUND.
    """
    _one(transaction, t.workflows, "workflow", workflow_id)
    columns = (_K.id, _K.name, _SHOWN_STATUS, _K.sequence, _K.parallel_group, _K.assigned_agent_id)
    query = sa.select(*columns).where(_K.workflow_id == workflow_id).order_by(*_IN_ORDER)
    rows = [list(row) for row in transaction.execute(query)]
    place = {row[0]: number for number, row in enumerate(rows)}
    d = t.dependencies.c
    edges = sa.select(d.depends_on_id, d.task_id).join(t.tasks, _K.id == d.task_id)
    pairs = _lines(transaction, edges.where(_K.workflow_id == workflow_id, _BLOCKS))
    holders = {row[5] for row in rows if row[5]}
    return {
        "columns": ["id", "name", "status", "sequence", "group", "agent"],
        "rows": rows,
        "edges": sorted([place[needed], place[task]] for needed, task in pairs if needed in place),
        "agents": _names(transaction, t.agents, holders),
    }


def tasks(
    transaction: Transaction,
    workflow_id: str,
    *,
    status: str | None = None,
    agent: str | None = None,
    group: str | None = None,
    words: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
) -> Rows:
    """List the tasks of a plan in their order.

    Raises:
        OrchestrationError: WORKFLOW_NOT_FOUND.
    """
    _one(transaction, t.workflows, "workflow", workflow_id)
    columns = (*_LISTED, _K.claimed_at, _K.updated_at, _K.outcome, _K.error)
    query = sa.select(*columns).where(
        _K.workflow_id == workflow_id,
        *_has_status(status),
        *_equal((_K.assigned_agent_id, agent), (_K.parallel_group, group)),
        *_has_words(words, _K.id, _K.name),
    )
    return _page(transaction, query, _IN_ORDER, limit, offset)


def task(transaction: Transaction, task_id: str) -> Mapped:
    """Give a task with its claim, its neighbours in the graph, why it is blocked, and its newest checkpoints.

    Raises:
        OrchestrationError: TASK_NOT_FOUND.
    """
    row = _one(transaction, t.tasks, "task", task_id)
    plan_row = _one(transaction, t.workflows, "workflow", row["workflow_id"])
    d, cp = t.dependencies.c, t.checkpoints.c
    needed = sa.select(d.depends_on_id).where(d.task_id == task_id, _BLOCKS)
    waiting = sa.select(d.task_id).where(d.depends_on_id == task_id, _BLOCKS)
    names = ("id", "name", "description", "sequence", "parallel_group", "plan", "plan_summary", "context", "outcome")
    more = ("outcome_detail", "error", "required_capabilities", "created_at", "updated_at")
    checkpoints = sa.select(t.checkpoints).where(cp.task_id == task_id)
    return {
        **{name: row[name] for name in (*names, *more)},
        "status": "blocked" if row["status"] == "pending" and row["open_dependencies"] else row["status"],
        "workflow": {"id": plan_row["id"], "name": plan_row["name"], "status": plan_row["status"]},
        "workspace": _workspace(transaction, row["workspace_id"]),
        "claim": _claim(transaction, row),
        "needs": _rows(transaction, sa.select(*_LISTED, _K.outcome).where(_K.id.in_(needed)).order_by(*_IN_ORDER)),
        "needed_by": _rows(transaction, sa.select(*_LISTED).where(_K.id.in_(waiting)).order_by(*_IN_ORDER)),
        "waits_for": _waits_for(transaction, task_id, set()),
        "checkpoints": _rows(transaction, checkpoints.order_by(cp.sequence.desc()).limit(MAX_CHECKPOINTS)),
        "checkpoints_total": _count(transaction, checkpoints),
    }


def agents(
    transaction: Transaction,
    *,
    status: str | None = None,
    role: str | None = None,
    is_online: bool = False,
    words: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
    conditions: Iterable[Condition] = (),
) -> Rows:
    """List agents with the tasks that they hold and until when, those online first."""
    online = [_A.status != "offline"] if is_online else []
    query = sa.select(t.agents).where(
        *conditions, *online, *_equal((_A.status, status), (_A.role, role)), *_has_words(words, _A.id, _A.name)
    )
    order = (sa.case((_A.status == "offline", 1), else_=0), _A.last_heartbeat.desc(), _A.number)
    found = _page(transaction, query, order, limit, offset)
    ids = [row["id"] for row in found.rows]
    held = _held(transaction, ids)
    unread = _unread(transaction, ids)
    names = (
        "id",
        "name",
        "runtime",
        "role",
        "status",
        "capabilities",
        "workspace_path",
        "last_heartbeat",
        "created_at",
    )
    return Rows(
        [
            {
                **{name: row[name] for name in names},
                "human": row["principal"].startswith(PERSON),
                "says_human": not row["principal"].startswith(PERSON) and (row["metadata"] or {}).get(HUMAN) is True,
                "tasks": held.get(row["id"], []),
                "unread": unread.get(row["id"], 0),
            }
            for row in found.rows
        ],
        found.total,
    )


def agent(transaction: Transaction, agent_id: str) -> Mapped:
    """Give one agent.

    Raises:
        OrchestrationError: AGENT_NOT_FOUND.
    """
    found = agents(transaction, conditions=[_A.id == agent_id]).rows
    if not found:
        raise not_found("agent", agent_id)
    return found[0]


def messages(
    transaction: Transaction,
    *,
    agent: str | None = None,
    plan: str | None = None,
    thread: str | None = None,
    status: str | None = None,
    words: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
) -> Rows:
    """List messages with the names of who has sent and got them, the newest first."""
    conditions = _equal((_M.workflow_id, plan), (_M.thread_id, thread), (_M.status, status))
    if agent is not None:
        conditions.append(sa.or_(_M.sender_id == agent, _M.recipient_id == agent))
    query = sa.select(t.messages).where(*conditions, *_has_words(words, _M.id, _M.subject, sa.cast(_M.body, sa.Text)))
    found = _page(transaction, query, (_M.created_at.desc(), _M.number.desc()), limit, offset)
    people = {row[name] for row in found.rows for name in ("sender_id", "recipient_id") if row[name]}
    names = _names(transaction, t.agents, people)
    return Rows(
        [
            row | {"sender": names.get(row["sender_id"]), "recipient": names.get(row["recipient_id"])}
            for row in found.rows
        ],
        found.total,
    )


def counts(transaction: Transaction) -> Mapped:
    """Count plans, the tasks of those that are not over, and agents, by status."""
    still_open = sa.select(_W.id).where(_W.status.not_in(("completed", "abandoned")))
    by_status = (
        ("plans", sa.select(_W.status, sa.func.count()).group_by(_W.status)),
        (
            "tasks",
            sa.select(_SHOWN_STATUS, sa.func.count()).where(_K.workflow_id.in_(still_open)).group_by(sa.text("1")),
        ),
        ("agents", sa.select(_A.status, sa.func.count()).group_by(_A.status)),
    )
    return {name: dict(_lines(transaction, query)) for name, query in by_status}


def find_tasks(transaction: Transaction, *, words: Sequence[str] = (), limit: int = 50, offset: int = 0) -> Rows:
    """Find tasks of all plans by their ids and names, the last changed first."""
    query = sa.select(*_LISTED, _K.updated_at, _W.name.label("plan_name")).join(t.workflows, _W.id == _K.workflow_id)
    found = query.where(*_has_words(words, _K.id, _K.name))
    return _page(transaction, found, (_K.updated_at.desc(), _K.number.desc()), limit, offset)


# Parts


def _task_counts(transaction: Transaction, workflow_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    query = sa.select(_K.workflow_id, _SHOWN_STATUS, sa.func.count()).where(_K.workflow_id.in_(workflow_ids))
    found: dict[str, dict[str, int]] = {}
    for workflow_id, status, number in _lines(transaction, query.group_by(_K.workflow_id, sa.text("2"))):
        found.setdefault(workflow_id, {})[status] = number
    return found


def _brief(transaction: Transaction, *conditions: Condition) -> list[Mapped]:
    return _rows(transaction, sa.select(*_LISTED).where(*conditions).order_by(*_IN_ORDER).limit(MAX_LISTED))


def _claim(transaction: Transaction, row: sa.RowMapping) -> Mapped | None:
    agent_id = row["assigned_agent_id"]
    if agent_id is None:
        return None
    names = _names(transaction, t.agents, {agent_id})
    until = _lease_ends(transaction, [row["id"]]).get(row["id"])
    return {
        "agent_id": agent_id,
        "agent_name": names.get(agent_id),
        "claimed_at": row["claimed_at"],
        "lease_until": until,
        "fence": row["fence"],
    }


def _workspace(transaction: Transaction, workspace_id: str | None) -> Mapped | None:
    columns = (t.workspaces.c[name] for name in ("id", "path", "branch", "status"))
    found = _rows(transaction, sa.select(*columns).where(t.workspaces.c.id == workspace_id)) if workspace_id else []
    return found[0] if found else None


def _waits_for(transaction: Transaction, task_id: str, seen: set[str]) -> list[Mapped]:
    """Give the open dependencies of a task with theirs; what was shown before is not opened again."""
    root: list[Mapped] = []
    layer: list[tuple[str, list[Mapped]]] = [(task_id, root)]
    d = t.dependencies.c
    while layer and len(seen) < MAX_NODES:
        below: list[tuple[str, list[Mapped]]] = []
        ids = [one for one, _ in layer]
        query = sa.select(d.task_id.label("waiting"), *_LISTED).join(t.tasks, _K.id == d.depends_on_id)
        query = query.where(d.task_id.in_(ids), _BLOCKS, _K.status.not_in(DONE)).order_by(*_IN_ORDER).limit(MAX_NODES)
        lists = dict(layer)
        for node in _rows(transaction, query):
            waiting, node["waits_for"] = node.pop("waiting"), []
            if len(seen) >= MAX_NODES:
                break
            lists[waiting].append(node)
            if node["id"] not in seen:
                seen.add(node["id"])
                below.append((node["id"], node["waits_for"]))
        layer = below
    return root


def _held(transaction: Transaction, agent_ids: Sequence[str]) -> dict[str, list[Mapped]]:
    columns = (*_LISTED, _K.workflow_id.label("plan"), _K.claimed_at)
    query = sa.select(*columns).where(_K.assigned_agent_id.in_(agent_ids)).order_by(_K.claimed_at, _K.number)
    rows = _rows(transaction, query)
    ends = _lease_ends(transaction, [row["id"] for row in rows])
    held: dict[str, list[Mapped]] = {}
    for row in rows:
        held.setdefault(row.pop("agent"), []).append(row | {"lease_until": ends.get(row["id"])})
    return held


def _unread(transaction: Transaction, agent_ids: Sequence[str]) -> dict[str, int]:
    is_valid = sa.or_(_M.expires_at.is_(None), _M.expires_at > transaction.now)
    query = sa.select(_M.recipient_id, sa.func.count()).where(
        _M.recipient_id.in_(agent_ids), _M.status == "unread", is_valid
    )
    return dict(_lines(transaction, query.group_by(_M.recipient_id)))


def _lease_ends(transaction: Transaction, task_ids: Sequence[str]) -> dict[str, int]:
    items = [PREFIX + task_id for task_id in task_ids]
    query = sa.select(leases.c.item, leases.c.expires_at).where(leases.c.item.in_(items), leases.c.holder.is_not(None))
    return {item.removeprefix(PREFIX): expires_at for item, expires_at in _lines(transaction, query)}


def _names(transaction: Transaction, table: sa.Table, ids: Iterable[str]) -> dict[str, str]:
    query = sa.select(table.c.id, table.c.name).where(table.c.id.in_([*ids]))
    return dict(_lines(transaction, query))


def _one(transaction: Transaction, table: sa.Table, kind: str, row_id: str) -> sa.RowMapping:
    row = transaction.execute(sa.select(table).where(table.c.id == row_id)).mappings().first()
    if row is None:
        raise not_found(kind, row_id)
    return row


def _page(transaction: Transaction, query: sa.Select[Any], order: Sequence[Any], limit: int, offset: int) -> Rows:
    rows = _rows(transaction, query.order_by(*order).limit(limit).offset(offset))
    return Rows(rows, _count(transaction, query))


def _rows(transaction: Transaction, query: sa.Select[Any]) -> list[Mapped]:
    return [dict(row) for row in transaction.execute(query).mappings()]


def _lines(transaction: Transaction, query: sa.Select[Any]) -> Sequence[Any]:
    return transaction.execute(query).all()


def _count(transaction: Transaction, query: sa.Select[Any]) -> int:
    return int(transaction.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one())


def _has_status(status: str | None) -> list[Condition]:
    if status in ("pending", "blocked"):
        return [_K.status == "pending", _IS_BLOCKED if status == "blocked" else _K.open_dependencies == 0]
    return _equal((_K.status, status))


def _has_words(words: Sequence[str], *columns: Any) -> list[Condition]:
    return [sa.or_(*(column.icontains(word, autoescape=True) for column in columns)) for word in words]


def _equal(*pairs: tuple[sa.ColumnElement[Any], Any]) -> list[Condition]:
    return [column == value for column, value in pairs if value is not None]
