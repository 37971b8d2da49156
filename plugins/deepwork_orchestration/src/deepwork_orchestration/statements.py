"""The statements of the tools, each compiled once. Imported at the first call only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, NamedTuple, get_args

import sqlalchemy as sa
from sqlalchemy import bindparam

from deepwork_orchestration import tables as t
from deepwork_orchestration.arguments import Priority
from deepwork_orchestration.models import (
    Agent,
    Checkpoint,
    Message,
    Repository,
    Row,
    Task,
    Template,
    WholeWorkflow,
    Workflow,
    Workspace,
)
from deepwork_orchestration.states import BEGUN, CLOSED, DONE, HUMAN, PERSON
from deepwork_sql.columns import JSON
from deepwork_sql.prepared import Prepared
from deepwork_sql.shares import in_turns

TABLES: dict[type[Row], sa.Table] = {
    Agent: t.agents,
    Checkpoint: t.checkpoints,
    Message: t.messages,
    Repository: t.repositories,
    Task: t.tasks,
    Template: t.templates,
    WholeWorkflow: t.workflows,
    Workflow: t.workflows,
    Workspace: t.workspaces,
}
# So many combinations of filters and of changed columns are remembered.
_REMEMBERED = 512

PRIORITIES = get_args(Priority)

Words = tuple[str, ...] | None

_LIMIT = bindparam("limit", type_=sa.BigInteger)
_OFFSET = bindparam("offset", type_=sa.BigInteger)
_NOW = bindparam("now", type_=sa.BigInteger)
_TOTAL = sa.func.count().label("total")


def words(values: Collection[str] | None) -> Words:
    """Give words of a filter as statements are remembered by them."""
    return None if values is None else tuple(sorted(set(values)))


def columns(model: type[Row]) -> list[Any]:
    """Give the columns of a table in the order in which the model takes them."""
    return [TABLES[model].c[field.name] for field in fields(model)]


def _select(model: type[Row]) -> sa.Select[Any]:
    return sa.select(*columns(model))


class Listed(NamedTuple):
    """The statement of a list, and the one that says how many characters each row of it has."""

    rows: Prepared
    sizes: Prepared


def _listed(query: sa.Select[Any]) -> Listed:
    sizes = query.with_only_columns(_size(query), maintain_column_froms=True)
    return Listed(Prepared(query.limit(_LIMIT)), Prepared(sizes.limit(_LIMIT)))


def _size(query: sa.Select[Any]) -> sa.ColumnElement[int]:
    texts = [column for column in query.selected_columns if isinstance(column.type, sa.String | JSON)]
    lengths = [sa.func.coalesce(sa.func.length(sa.cast(column, sa.Text)), 0) for column in texts]
    return sum(lengths, sa.literal_column("0", sa.BigInteger)).label("size")


def _one_of(column: Any, chosen: Iterable[str]) -> Any:
    return sa.or_(sa.false(), *(column == word for word in chosen))


def _count(query: sa.Select[Any]) -> Prepared:
    return Prepared(query.with_only_columns(_TOTAL, maintain_column_froms=True).order_by(None))


# One row of any table.


def _insertion(model: type[Row]) -> Prepared:
    """Make the statement for a row of all columns, which gives the row as it is stored."""
    columns_but_number = [column.name for column in TABLES[model].columns if column.name != "number"]
    values: dict[str, Any] = {name: bindparam(name) for name in columns_but_number}
    return Prepared(sa.insert(TABLES[model]).values(values).returning(*columns(model)))


BY_ID = {model: Prepared(_select(model).where(table.c.id == bindparam("id_"))) for model, table in TABLES.items()}
INSERTIONS = {model: _insertion(model) for model in TABLES}


@lru_cache(_REMEMBERED)
def change(model: type[Row], names: frozenset[str]) -> Prepared:
    """Give the statement that changes these columns of a row, and gives the row as it is then."""
    table = TABLES[model]
    values: dict[str, Any] = {name: bindparam(name) for name in sorted(names)}
    return Prepared(sa.update(table).where(table.c.id == bindparam("id_")).values(values).returning(*columns(model)))


# Repositories.

_R = t.repositories.c
REPOSITORY_AT = Prepared(_select(Repository).where(_R.path == bindparam("path")))
REPOSITORY_PATH = Prepared(sa.select(_R.path).where(_R.id == bindparam("id_")))
REPOSITORY_PAGE = _listed(_select(Repository).order_by(_R.created_at.desc(), _R.number.desc()).offset(_OFFSET))
REPOSITORY_COUNT = Prepared(sa.select(_TOTAL).select_from(t.repositories))


# Workflows.

_W = t.workflows.c
START_WORKFLOW = Prepared(
    sa.update(t.workflows)
    .where(_W.id == bindparam("id_"), _W.status == "ready")
    .values(status="in_progress", updated_at=_NOW)
    .returning(*columns(Workflow))
)
SOURCE_CONTENT = Prepared(sa.select(_W.source_content).where(_W.id == bindparam("id_")))
WORKFLOW_NUMBER = Prepared(sa.select(_W.number).where(_W.id == bindparam("id_")))


@lru_cache(_REMEMBERED)
def workflow_page(statuses: Words, *, has_path: bool) -> tuple[Prepared, Prepared]:
    """Give the statements for what lists show of workflows, and for how many there are."""
    query = sa.select(_W.id, _W.name, _W.status, _W.created_at, _W.updated_at)
    if has_path:
        query = query.where(_W.repository_id.in_(sa.select(_R.id).where(_R.path == bindparam("path"))))
    if statuses is not None:
        query = query.where(_one_of(_W.status, statuses))
    page = query.order_by(_W.created_at.desc(), _W.number.desc()).limit(_LIMIT).offset(_OFFSET)
    return Prepared(page), _count(query)


# Tasks and their dependencies.

_T, _D = t.tasks.c, t.dependencies.c
_OF_WORKFLOW = _T.workflow_id == bindparam("workflow_id")
_BLOCKS = _D.type == "blocks"


def _mentions(column: Any, word: str) -> Any:
    """Choose rows whose JSON may have a word; whoever reads them looks closer."""
    return sa.cast(column, sa.Text).like(f'%"{word}"%')


def _has(column: Any, word: str) -> Any:
    """Choose rows whose list of texts has this one. `LIKE` of SQLite takes capital letters for small ones."""
    text = sa.cast(column, sa.Text)
    return sa.and_(_mentions(column, word), sa.func.replace(text, f'"{word}"', "") != text)


def _in_order(query: sa.Select[Any]) -> sa.Select[Any]:
    return query.order_by(_T.sequence, _T.name, _T.number)


def _free(query: sa.Select[Any], *statuses: str) -> sa.Select[Any]:
    return query.where(_one_of(_T.status, statuses), _T.assigned_agent_id.is_(None), _T.open_dependencies == 0)


TASKS = Prepared(_in_order(_select(Task).where(_OF_WORKFLOW)))
_SUMMARY = (_T.id, _T.name, _T.status, _T.sequence, _T.parallel_group, _T.open_dependencies)
TASK_SUMMARIES = _listed(
    _in_order(sa.select(*_SUMMARY, _T.description, _T.outcome, _T.plan_summary).where(_OF_WORKFLOW))
)
_LINE = (_T.id, _T.name, _T.status, _T.sequence, _T.parallel_group, _T.open_dependencies, _T.assigned_agent_id)
TASK_LINES = Prepared(_in_order(sa.select(*_LINE).where(_OF_WORKFLOW)))
_BEFORE = (_OF_WORKFLOW, _T.sequence < bindparam("sequence"))
# Outcomes and summaries may be long texts: what is longer than anybody wants is not read.
_CHARACTERS = bindparam("characters", type_=sa.Integer)
_OUTCOME = sa.func.substr(_T.outcome, 1, _CHARACTERS).label("outcome")
_RESULT = (_T.id, _T.name, _T.status, _T.open_dependencies, _OUTCOME)
TASKS_BEFORE_COUNT = Prepared(sa.select(_TOTAL).select_from(t.tasks).where(*_BEFORE))
TASKS_BESIDE = Prepared(
    _in_order(
        sa.select(*_RESULT).where(_OF_WORKFLOW, _T.parallel_group == bindparam("group"), _T.id != bindparam("id_"))
    )
)
_DEPENDENCY_RESULTS = sa.select(*_RESULT).where(
    _T.id.in_(sa.select(_D.depends_on_id).where(_D.task_id == bindparam("task_id"), _BLOCKS)),
    _one_of(_T.status, DONE),
)
DEPENDENCY_RESULTS = Prepared(_in_order(_DEPENDENCY_RESULTS))
DEPENDENCY_SIZES = Prepared(
    _DEPENDENCY_RESULTS.with_only_columns(
        _TOTAL, sa.func.coalesce(sa.func.sum(sa.func.length(_OUTCOME)), 0).label("size"), maintain_column_froms=True
    )
)


@cache
def tasks_before(*, has_detail: bool) -> Listed:
    """Give the statement for the results of the last of the tasks of lower sequence, the last one first."""
    query = sa.select(*_RESULT, *([_T.outcome_detail] if has_detail else ())).where(*_BEFORE)
    return _listed(query.order_by(_T.sequence.desc(), _T.name.desc(), _T.number.desc()))


DEPENDENCIES = Prepared(
    _in_order(
        sa.select(*_LINE).where(
            _T.id.in_(sa.select(_D.depends_on_id).where(_D.task_id == bindparam("task_id"), _BLOCKS))
        )
    )
)


@cache
def dependency_names(*, is_done: bool) -> Prepared:
    """Give the statement for the names of what the tasks of a workflow depend on: done, or still open."""
    task, needed = t.tasks.alias("task"), t.tasks.alias("needed")
    done = _one_of(needed.c.status, DONE)
    return Prepared(
        sa.select(_D.task_id, needed.c.name)
        .join(task, task.c.id == _D.task_id)
        .join(needed, needed.c.id == _D.depends_on_id)
        .where(task.c.workflow_id == bindparam("workflow_id"), _BLOCKS, done if is_done else ~done)
        .order_by(needed.c.sequence, needed.c.name)
    )


ADD_EDGE = Prepared(
    sa.insert(t.dependencies).values(
        task_id=bindparam("task_id"), depends_on_id=bindparam("depends_on_id"), type=sa.literal("blocks")
    )
)
EDGES = Prepared(
    sa.select(_D.task_id, _D.depends_on_id)
    .join(t.tasks, _T.id == _D.task_id)
    .where(_OF_WORKFLOW, _BLOCKS)
    .order_by(_T.sequence, _T.number)
)
RELEASE_DEPENDENTS = Prepared(
    sa.update(t.tasks)
    .where(_T.id.in_(sa.select(_D.task_id).where(_D.depends_on_id == bindparam("task_id"), _BLOCKS)))
    .values(open_dependencies=_T.open_dependencies - 1, updated_at=_NOW)
)


@lru_cache(_REMEMBERED)
def actionable(statuses: tuple[str, ...]) -> Listed:
    """Give the statement for what a coordinator chooses tasks by; how they were planned is not a part of it."""
    line = _T.id, _T.name, _T.description, _T.status, _T.sequence, _T.parallel_group
    query = sa.select(*line, _T.required_capabilities, _T.error)
    return _listed(_in_order(_free(query, *statuses).where(_OF_WORKFLOW)))


@cache
def available(*, has_workflow: bool) -> Prepared:
    """Make the statement for a page of pending tasks that nobody holds, in the order of their index.

    It gives what agents are chosen for them by, and how many characters they have.
    """
    closed = sa.select(_W.id).where(_one_of(_W.status, CLOSED))
    line = sa.select(_T.id, _T.required_capabilities, _size(_select(Task)))
    query = _free(line, "pending").where(_T.workflow_id.not_in(closed))
    if has_workflow:
        query = query.where(_OF_WORKFLOW)
    return Prepared(query.order_by(_T.sequence, _T.workflow_number, _T.name).limit(_LIMIT).offset(_OFFSET))


OPEN_TASK_COUNT = Prepared(sa.select(_TOTAL).select_from(t.tasks).where(_OF_WORKFLOW, ~_one_of(_T.status, DONE)))
_LONG = {"description", "plan", "context", "outcome", "outcome_detail", "error"}
# What ends a claim asks for none of the long texts.
_SHORT_TASK = [sa.null().label(column.name) if column.name in _LONG else column for column in columns(Task)]
HELD_BY = Prepared(
    sa.select(*_SHORT_TASK)
    .where(_T.assigned_agent_id == bindparam("agent_id"))
    .order_by(_T.claimed_at, _T.fence, _T.number)
)
HOLDERS = Prepared(sa.select(_T.assigned_agent_id).where(_T.assigned_agent_id.is_not(None)).distinct())


def _tasks_for_people() -> Prepared:
    """Make the statement for tasks of people, the oldest first, and of long texts no more than anybody is shown."""
    candidates = (
        sa.select(_T.id, _T.workflow_id, _W.principal, _T.updated_at, _T.number)
        .join(t.workflows, _W.id == _T.workflow_id)
        .where(
            _one_of(_T.status, ("pending", *BEGUN)),
            _T.open_dependencies == 0,
            ~_one_of(_W.status, CLOSED),
            _has(_T.required_capabilities, HUMAN),
        )
    )
    order = ("updated_at", "number")
    chosen = in_turns(candidates, order=order, groups=("principal", "workflow_id")).limit(_LIMIT).subquery()
    plan = sa.func.substr(sa.cast(_T.plan, sa.Text), 1, _CHARACTERS).label("plan_text")
    description = sa.func.substr(_T.description, 1, _CHARACTERS).label("description")
    line = _T.id, _T.workflow_id, _W.name.label("workflow_name"), _T.name, _T.assigned_agent_id, _T.updated_at
    return Prepared(
        sa.select(*line, description, plan, chosen.c.total)
        .join(chosen, chosen.c.id == _T.id)
        .join(t.workflows, _W.id == _T.workflow_id)
        .order_by(*(chosen.c[name] for name in order))
    )


TASKS_FOR_PEOPLE = _tasks_for_people()

_OF_PLAN = sa.select(_T.id).where(_T.workflow_id == _W.id)
_GOES_ON = sa.or_(
    _T.assigned_agent_id.is_not(None),
    _one_of(_T.status, BEGUN),
    # A task for a person counts, too: then that is what the plan waits for.
    sa.and_(_T.status == "pending", _T.open_dependencies == 0),
)
_STUCK = (
    _W.status == "in_progress",
    _OF_PLAN.where(_T.status == "failed").correlate(t.workflows).exists(),
    ~_OF_PLAN.where(_GOES_ON).correlate(t.workflows).exists(),
)
IS_STUCK = Prepared(sa.select(_W.id).where(_W.id == bindparam("workflow_id"), *_STUCK))


def _stuck_plans() -> Prepared:
    """Make the statement for the failed tasks of plans in which nothing can go on."""
    of_plan = sa.select(t.tasks).where(_T.workflow_id == _W.id).correlate(t.workflows)
    since = of_plan.with_only_columns(sa.func.max(_T.updated_at)).scalar_subquery()
    waiting = of_plan.with_only_columns(_TOTAL).where(_T.status == "pending").scalar_subquery()
    plan = _W.id, _W.name.label("workflow_name"), _W.principal, _W.number
    candidates = sa.select(*plan, since.label("since"), waiting.label("waiting")).where(*_STUCK)
    order = ("since", "number")
    chosen = in_turns(candidates, order=order, groups=("principal",)).limit(_LIMIT).cte("chosen")
    place = (_T.sequence, _T.name, _T.number)
    failed = (
        sa.select(
            _T.id,
            _T.workflow_id,
            _T.name,
            sa.func.substr(_T.error, 1, _CHARACTERS).label("error"),
            sa.func.row_number().over(partition_by=_T.workflow_id, order_by=place).label("place"),
            sa.func.count().over(partition_by=_T.workflow_id).label("failed"),
        )
        .where(_T.status == "failed", _T.workflow_id.in_(sa.select(chosen.c.id)))
        .subquery()
    )
    of_chosen = chosen.c.workflow_name, chosen.c.since, chosen.c.waiting, chosen.c.total
    return Prepared(
        sa.select(*failed.c, *of_chosen)
        .join(chosen, chosen.c.id == failed.c.workflow_id)
        .where(failed.c.place <= bindparam("tasks", type_=sa.Integer))
        .order_by(*(chosen.c[name] for name in order), failed.c.place)
    )


STUCK_PLANS = _stuck_plans()


# Checkpoints.

_C = t.checkpoints.c
_OF_TASK = _C.task_id == bindparam("task_id")
LAST_SEQUENCE = Prepared(sa.select(sa.func.max(_C.sequence).label("last")).where(_OF_TASK))
LAST_CHECKPOINTS = _listed(
    _select(Checkpoint).where(_OF_TASK, _C.sequence < bindparam("before")).order_by(_C.sequence.desc())
)
# The same without what they say in detail, which may be long.
LAST_CHECKPOINT_LINES = Prepared(
    sa.select(*(column for column in columns(Checkpoint) if column.name not in ("detail", "files_changed")))
    .where(_OF_TASK, _C.sequence < bindparam("before"))
    .order_by(_C.sequence.desc())
    .limit(_LIMIT)
)
CHECKPOINT_COUNT = Prepared(sa.select(_TOTAL).select_from(t.checkpoints).where(_OF_TASK))


@lru_cache(_REMEMBERED)
def checkpoints(kinds: Words) -> Listed:
    query = _select(Checkpoint).where(_OF_TASK, _C.sequence > bindparam("since"))
    if kinds is not None:
        query = query.where(_one_of(_C.checkpoint_type, kinds))
    return _listed(query.order_by(_C.sequence))


def _newest_summaries() -> Prepared:
    newest = (
        sa.select(_C.task_id, sa.func.max(_C.sequence).label("sequence"))
        .join(t.tasks, _T.id == _C.task_id)
        .where(_OF_WORKFLOW, _T.parallel_group == bindparam("group"))
        .group_by(_C.task_id)
        .subquery()
    )
    is_newest = sa.and_(_C.task_id == newest.c.task_id, _C.sequence == newest.c.sequence)
    summary = sa.func.substr(_C.summary, 1, _CHARACTERS)
    return Prepared(sa.select(_C.task_id, summary.label("summary")).join(newest, is_newest))


NEWEST_SUMMARIES = _newest_summaries()


# Agents.

_A = t.agents.c
AGENTS_NAMED = Prepared(
    _select(Agent).where(sa.or_(_A.id == bindparam("name"), _A.name == bindparam("name"))).order_by(_A.number)
)
PEOPLE = Prepared(_select(Agent).where(_A.principal.startswith(PERSON, autoescape=True)).order_by(_A.number))


@lru_cache(_REMEMBERED)
def agents(statuses: Words, role: str | None, *, has_runtime: bool) -> tuple[Listed, Prepared]:
    """Make the statements for agents, and for their ids alone."""
    query = _select(Agent).order_by(_A.created_at, _A.number)
    if statuses is not None:
        query = query.where(_one_of(_A.status, statuses))
    if role is not None:
        query = query.where(_A.role == role)
    if has_runtime:
        query = query.where(_A.runtime == bindparam("runtime"))
    return _listed(query), Prepared(query.with_only_columns(_A.id))


# Workspaces and templates.

_S, _P = t.workspaces.c, t.templates.c


@lru_cache(_REMEMBERED)
def workspaces(statuses: Words) -> Prepared:
    query = _select(Workspace).where(_S.workflow_id == bindparam("workflow_id")).order_by(_S.created_at, _S.number)
    return Prepared(query if statuses is None else query.where(_one_of(_S.status, statuses)))


ACTIVE_WORKSPACES_AT = Prepared(_select(Workspace).where(_S.path == bindparam("path"), _S.status == "active"))
TEMPLATES = _listed(_select(Template).order_by(_P.name))
TEMPLATE_NAMES = Prepared(sa.select(_P.name))
TEMPLATE_NAMED = Prepared(sa.select(_P.id).where(_P.name == bindparam("name")))


# Messages.

_M = t.messages.c
_IS_RECIPIENT = _M.recipient_id == bindparam("agent_id")
_NOT_EXPIRED = sa.or_(_M.expires_at.is_(None), _M.expires_at > _NOW)

UNREAD_QUERIES = Prepared(
    sa.select(_M.recipient_id)
    .where(_M.sender_id == bindparam("sender_id"), _M.message_type == "query", _M.status == "unread", _NOT_EXPIRED)
    .distinct()
)


def waiting_messages(recipient_ids: Collection[str]) -> sa.Select[Any]:
    """Give the statement for the unread messages to some agents: the most urgent first, then the oldest.

    Each principal and each sender of it has a share of the messages that there is room for.
    """
    urgency = sa.case(*((_M.priority == word, -place) for place, word in enumerate(PRIORITIES)), else_=0)
    candidates = (
        sa.select(_M.id, urgency.label("urgency"), _M.created_at, _M.number, _M.sender_id, _A.principal)
        .outerjoin(t.agents, _A.id == _M.sender_id)
        .where(_M.recipient_id.in_(recipient_ids), _M.status == "unread", _NOT_EXPIRED)
    )
    order = ("urgency", "created_at", "number")
    chosen = in_turns(candidates, order=order, groups=("principal", "sender_id")).limit(_LIMIT).subquery()
    beginning = sa.func.substr(sa.cast(_M.body, sa.Text), 1, _CHARACTERS).label("body")
    line = (beginning if column.name == "body" else column for column in columns(Message))
    query = sa.select(*line, chosen.c.total).join(chosen, chosen.c.id == _M.id)
    return query.order_by(*(chosen.c[name] for name in order))


def newest_messages(query: sa.Select[Any]) -> Listed:
    return _listed(query.order_by(_M.created_at.desc(), _M.number.desc()))


@lru_cache(_REMEMBERED)
def inbox(equal: frozenset[str], message_types: Words, priorities: Words, *, has_since: bool) -> Listed:
    """Give the statement for the messages that an agent has received; of a thread also those that it has sent.

    Args:
        equal: The columns that have to be equal to an argument of the same name, `thread_id` among them or not.
        message_types: The types that are wanted.
        priorities: The priorities that are wanted.
        has_since: Whether only messages after `since` are wanted.
    """
    is_theirs = _IS_RECIPIENT
    if "thread_id" in equal:
        is_theirs = sa.or_(is_theirs, _M.sender_id == bindparam("agent_id"))
    conditions = [is_theirs, _NOT_EXPIRED, *(_M[name] == bindparam(name) for name in sorted(equal))]
    if message_types is not None:
        conditions.append(_one_of(_M.message_type, message_types))
    if priorities is not None:
        conditions.append(_one_of(_M.priority, priorities))
    if has_since:
        conditions.append(_M.created_at > bindparam("since"))
    return newest_messages(_select(Message).where(*conditions))


@cache
def all_messages(*, has_workflow: bool, has_agent: bool) -> Listed:
    query = _select(Message)
    if has_workflow:
        query = query.where(_M.workflow_id == bindparam("workflow_id"))
    if has_agent:
        query = query.where(sa.or_(_IS_RECIPIENT, _M.sender_id == bindparam("agent_id")))
    return newest_messages(query)


@lru_cache(_REMEMBERED)
def unread_by_priority(priorities: Words) -> Prepared:
    query = sa.select(_M.priority, _TOTAL).where(_IS_RECIPIENT, _M.status == "unread", _NOT_EXPIRED)
    if priorities is not None:
        query = query.where(_one_of(_M.priority, priorities))
    return Prepared(query.group_by(_M.priority))
