"""What people are shown of tracked work: reading functions for pages, a part of it at a time.

Every function runs in a transaction that reads, such as
`TrackingDatabase(context).read(lambda transaction: work(transaction, id))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, func, or_, select

from deepwork_sql import Transaction
from deepwork_sql.pages import ListQuery, Rows
from deepwork_tracking.errors import NotFound
from deepwork_tracking.log import LOGS
from deepwork_tracking.report import file_lines, row_of, workflow_rows
from deepwork_tracking.rows import count, find, phase_rows, task_row, with_task
from deepwork_tracking.tables import phases, tasks, workflows

MAX_FILES = 200

Mapped = dict[str, Any]
Condition = ColumnElement[bool]


class TaskFilter(NamedTuple):
    """Which tasks of a workflow are asked for; what is None leaves out none."""

    phase: int | None = None
    status: str | None = None
    agent: str | None = None


def all_work(transaction: Transaction, status: str | None, query: ListQuery) -> Rows:
    """List tracked workflows, the newest first."""
    c = workflows.c
    conditions = [*_has_words(query.words, c.id, c.name, c.objective), *_equal((c.status, status))]
    rows = transaction.execute(_page(workflow_rows().where(*conditions), query))
    return Rows([_shown(row) for row in rows], count(transaction, select(c.id).where(*conditions)))


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
            name: count(transaction, select(log.table.c.id).where(log.table.c.workflow_id == workflow_id))
            for name, log in LOGS.items()
        },
    }


def work_tasks(transaction: Transaction, workflow_id: str, chosen: TaskFilter, query: ListQuery) -> Rows:
    """List the tasks of a tracked workflow with their first files, in the order of their start.

    Raises:
        NotFound: There is no such workflow.
    """
    find(transaction, workflows, workflow_id)
    c = tasks.c
    matching = _tasks(c.workflow_id == workflow_id).where(
        *_equal((phases.c.number, chosen.phase), (c.status, chosen.status), (c.agent_name, chosen.agent)),
        *_has_words(query.words, c.id, c.name, c.goal, c.summary),
    )
    page = transaction.execute(_page(matching.order_by(c.started_at, c.position), query))
    return Rows([_task(row, MAX_FILES) for row in page], count(transaction, matching))


def work_task(transaction: Transaction, workflow_id: str, task_id: str) -> Mapped:
    """Return a task with all its files.

    Raises:
        NotFound: The workflow has no such task.
    """
    row = transaction.execute(_tasks(tasks.c.workflow_id == workflow_id, tasks.c.id == task_id)).first()
    if row is None:
        raise NotFound(f"workflow {workflow_id[:64]!r} has no task {task_id[:64]!r}")
    return _task(row, None)


def work_log(transaction: Transaction, workflow_id: str, kind: str, query: ListQuery) -> Rows:
    """List what tasks have logged, one of `LOGS`, the newest first.

    Raises:
        NotFound: There is no such workflow.
    """
    find(transaction, workflows, workflow_id)
    log = LOGS[kind]
    c = log.table.c
    texts = [c[name] for name in log.texts]
    matching = with_task(log.table).where(c.workflow_id == workflow_id, *_has_words(query.words, c.id, *texts))
    page = transaction.execute(_page(matching.order_by(c.created_at.desc(), c.position.desc()), query))
    return Rows([log.view(row) | _blocking(kind, row) for row in page], count(transaction, matching))


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
        "files": [[mark, path] for mark, path in files[:limit]],
        "files_total": len(files),
        "warnings": list((row.verification or {}).get("warnings", ())),
    }


def _blocking(kind: str, row: Row[Any]) -> Mapped:
    return {"blocks": row.requires_human_review and row.resolved_at is None} if kind == "issues" else {}


def _page(query: Select[Any], asked: ListQuery) -> Select[Any]:
    return query.limit(asked.limit).offset(asked.offset)


def _has_words(words: Sequence[str], *columns: Any) -> list[Condition]:
    return [or_(*(column.icontains(word, autoescape=True) for column in columns)) for word in words]


def _equal(*pairs: tuple[ColumnElement[Any], Any]) -> list[Condition]:
    return [column == value for column, value in pairs if value is not None]
