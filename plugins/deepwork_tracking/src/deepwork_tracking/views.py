"""What people are shown of tracked work: reading functions for pages, a part of it at a time.

Every function runs in a transaction that reads, such as
`TrackingDatabase(context).read(lambda transaction: work(transaction, id))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, Table, func, or_, select

from deepwork_sql import Transaction
from deepwork_tracking.errors import NotFound
from deepwork_tracking.report import file_lines, row_of, workflow_rows
from deepwork_tracking.rows import decision_row, find, issue_row, milestone_row, phase_rows, task_row, with_task
from deepwork_tracking.tables import decisions, issues, milestones, phases, tasks, workflows
from deepwork_tracking.words import iso_or_none

MAX_FILES = 200

Mapped = dict[str, Any]
Condition = ColumnElement[bool]


class Rows(NamedTuple):
    """One page of a list, and how long the whole list is."""

    rows: list[Mapped]
    total: int


class Log(NamedTuple):
    """One kind of what tasks log."""

    table: Table
    view: Callable[[Row[Any]], Mapped]
    texts: tuple[str, ...]


LOGS = {
    "decisions": Log(decisions, decision_row, ("question", "chosen", "reasoning")),
    "issues": Log(issues, issue_row, ("description", "resolution")),
    "milestones": Log(milestones, milestone_row, ("message",)),
}


def all_work(
    transaction: Transaction, *, status: str | None = None, words: Sequence[str] = (), limit: int = 50, offset: int = 0
) -> Rows:
    """List tracked workflows, the newest first."""
    c = workflows.c
    conditions = [*_has_words(words, c.id, c.name, c.objective), *_equal((c.status, status))]
    rows = transaction.execute(workflow_rows().where(*conditions).limit(limit).offset(offset))
    return Rows([_shown(row) for row in rows], _count(transaction, select(c.id).where(*conditions)))


def work(transaction: Transaction, workflow_id: str) -> Mapped:
    """Return a tracked workflow with its phases, and how much its tasks have logged.

    Raises:
        NotFound: There is no such workflow.
    """
    find(transaction, workflows, workflow_id)
    row = transaction.execute(workflow_rows().where(workflows.c.id == workflow_id)).one()
    names = ("profile", "scope", "constraints", "summary", "achievements", "limitations", "metrics")
    return {
        **_shown(row),
        **{name: getattr(row, name) for name in names},
        "phases": phase_rows(transaction, phases.c.workflow_id == workflow_id),
        "counts": {
            name: _count(transaction, select(log.table.c.id).where(log.table.c.workflow_id == workflow_id))
            for name, log in LOGS.items()
        },
    }


def work_tasks(
    transaction: Transaction,
    workflow_id: str,
    *,
    phase: int | None = None,
    status: str | None = None,
    agent: str | None = None,
    words: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
) -> Rows:
    """List the tasks of a tracked workflow with their first files, in the order of their start.

    Raises:
        NotFound: There is no such workflow.
    """
    find(transaction, workflows, workflow_id)
    c = tasks.c
    query = _tasks(c.workflow_id == workflow_id).where(
        *_equal((phases.c.number, phase), (c.status, status), (c.agent_name, agent)),
        *_has_words(words, c.id, c.name, c.goal, c.summary),
    )
    page = transaction.execute(query.order_by(c.started_at, c.position).limit(limit).offset(offset))
    return Rows([_task(row, MAX_FILES) for row in page], _count(transaction, query))


def work_task(transaction: Transaction, workflow_id: str, task_id: str) -> Mapped:
    """Return a task with all its files.

    Raises:
        NotFound: The workflow has no such task.
    """
    row = transaction.execute(_tasks(tasks.c.workflow_id == workflow_id, tasks.c.id == task_id)).first()
    if row is None:
        raise NotFound(f"workflow {workflow_id[:64]!r} has no task {task_id[:64]!r}")
    return _task(row, None)


def work_log(
    transaction: Transaction,
    workflow_id: str,
    kind: str,
    *,
    words: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
) -> Rows:
    """List what tasks have logged, one of `LOGS`, the newest first.

    Raises:
        NotFound: There is no such workflow.
    """
    find(transaction, workflows, workflow_id)
    log = LOGS[kind]
    c = log.table.c
    texts = [c[name] for name in log.texts]
    query = with_task(log.table).where(c.workflow_id == workflow_id, *_has_words(words, c.id, *texts))
    newest = query.order_by(c.created_at.desc(), c.position.desc())
    rows = [log.view(row) | _blocking(kind, row) for row in transaction.execute(newest.limit(limit).offset(offset))]
    return Rows(rows, _count(transaction, query))


def work_counts(transaction: Transaction) -> dict[str, int]:
    """Count tracked workflows by their status."""
    lines: Sequence[Any] = transaction.execute(
        select(workflows.c.status, func.count()).group_by(workflows.c.status)
    ).all()
    return dict(lines)


def _shown(row: Row[Any]) -> Mapped:
    return row_of(row) | {"objective": row.objective}


def _tasks(*conditions: Condition) -> Select[Any]:
    joined = select(tasks, phases.c.number.label("phase_number")).join(phases, phases.c.id == tasks.c.phase_id)
    return joined.where(*conditions)


def _task(row: Row[Any], limit: int | None) -> Mapped:
    files = file_lines(row.files_changed)
    return {
        **task_row(row),
        "phase_number": row.phase_number,
        "started_at": iso_or_none(row.started_at),
        "files": [[mark, path] for mark, path in files[:limit]],
        "files_total": len(files),
        "warnings": list((row.verification or {}).get("warnings", ())),
    }


def _blocking(kind: str, row: Row[Any]) -> Mapped:
    return {"blocks": row.requires_human_review and row.resolved_at is None} if kind == "issues" else {}


def _count(transaction: Transaction, query: Select[Any]) -> int:
    return int(transaction.execute(select(func.count()).select_from(query.subquery())).scalar_one())


def _has_words(words: Sequence[str], *columns: Any) -> list[Condition]:
    return [or_(*(column.icontains(word, autoescape=True) for column in columns)) for word in words]


def _equal(*pairs: tuple[ColumnElement[Any], Any]) -> list[Condition]:
    return [column == value for column, value in pairs if value is not None]
