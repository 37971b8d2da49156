"""`get_context`: what is known of a workflow, filtered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, select

from deepwork_sql import Transaction
from deepwork_sql.shares import in_turns
from deepwork_sql.statement import Statement
from deepwork_tracking.arguments import MAX_TEXT, Filter
from deepwork_tracking.log import LOGS, Log
from deepwork_tracking.rows import HEAVY, count, find, issue_row, phase_rows, task_row, with_task, workflow_row
from deepwork_tracking.tables import issues, phases, tasks, workflows

MAX_ROWS = 200

Conditions = list[ColumnElement[bool]]
SectionReader = Callable[[Transaction, Conditions, int | None, int | None], tuple[list[dict[str, Any]], int]]

WAITING: Conditions = [issues.c.requires_human_review.is_(True), issues.c.resolved_at.is_(None)]
_LONG = ("description", "resolution")
_CANDIDATES = (
    "SELECT i.id, i.workflow_id, t.agent_name, i.created_at, i.position FROM tracking_issues AS i "
    "JOIN tracking_tasks AS t ON t.id = i.task_id WHERE i.requires_human_review = TRUE AND i.resolved_at IS NULL"
)
_CHOSEN = in_turns(_CANDIDATES, order=("created_at", "position"), groups=("workflow_id", "agent_name"))
_READ = [
    *(f"i.{column.name}" for column in issues.c if column.name not in _LONG),
    *(f"substr(i.{name}, 1, CAST(:characters AS INTEGER)) AS {name}" for name in _LONG),
]
_BLOCKERS = Statement(
    f"SELECT {', '.join(_READ)}, t.name AS task_name, t.agent_name, chosen.total FROM tracking_issues AS i "
    f"JOIN tracking_tasks AS t ON t.id = i.task_id JOIN ({_CHOSEN} LIMIT :limit) AS chosen ON chosen.id = i.id "
    "ORDER BY chosen.created_at, chosen.position"
)


def get_context(
    transaction: Transaction,
    workflow_id: str,
    include: Sequence[str],
    filter: Filter | None = None,  # noqa: A002 - the specification's name
    *,
    limit: int | None = MAX_ROWS,
) -> dict[str, Any]:
    """Show the sections of a workflow that are asked for; the filter does not concern the phases.

    A list has its newest rows, at most as many as the limit; the counts always count all.

    Raises:
        NotFound: There is no such workflow.
        InvalidCall: The filter's time is not a time.
    """
    context = workflow_row(find(transaction, workflows, workflow_id))
    wanted = filter or Filter()
    conditions, since = _conditions(workflow_id, wanted), wanted.since_milliseconds
    if "phase_summary" in include:
        context["phase_summary"] = phase_rows(transaction, phases.c.workflow_id == workflow_id)[-(limit or 0) :]
    for section, read in SECTIONS.items():
        if section in include:
            rows, total = read(transaction, conditions, since, limit)
            context |= {section: rows, f"{section}_count": total}
    if "blockers" in include:
        context["has_blockers"] = context["blockers_count"] > 0
    if wanted.applied:
        context["filters_applied"] = wanted.applied
    if wanted.phase is not None and not _has_phase(transaction, workflow_id, wanted.phase):
        context["warning"] = f"the workflow has no phase {wanted.phase}"
    return context


def open_blockers(transaction: Transaction, limit: int, characters: int = MAX_TEXT) -> tuple[list[dict[str, Any]], int]:
    """Return issues of all workflows that wait for a person, and how many there are in all.

    They are the oldest, with a share for each workflow and each agent of it, and so many characters of their texts.
    """
    rows = transaction.rows(_BLOCKERS, limit=limit, characters=characters)
    blockers = [{"workflow_id": row.workflow_id, **issue_row(row)} for row in rows]
    return blockers, rows[0].total if rows else 0


def _conditions(workflow_id: str, wanted: Filter) -> Conditions:
    """What the tasks must be like whose rows are asked for."""
    conditions: Conditions = [tasks.c.workflow_id == workflow_id]
    if wanted.agent is not None:
        conditions.append(tasks.c.agent_name == wanted.agent)
    if wanted.phase is not None:
        phase = select(phases.c.id).where(phases.c.workflow_id == workflow_id, phases.c.number == wanted.phase)
        conditions.append(tasks.c.phase_id.in_(phase))
    return conditions


def _read_tasks(
    transaction: Transaction, conditions: Conditions, since: int | None, limit: int | None
) -> tuple[list[dict[str, Any]], int]:
    all_conditions = conditions if since is None else [*conditions, tasks.c.started_at >= since]
    columns = [column for column in tasks.c if column.name not in HEAVY]
    query = (
        select(*columns)
        .where(*all_conditions)
        .order_by(tasks.c.started_at.desc(), tasks.c.position.desc())
        .limit(limit)
    )
    rows = [task_row(row) for row in transaction.execute(query)]
    return rows[::-1], count(transaction, select(tasks.c.id).where(*all_conditions))


def _reader(log: Log, *own: ColumnElement[bool]) -> SectionReader:
    """Make the function that reads one kind of what tasks have logged, the newest first."""
    created = log.table.c.created_at

    def read(
        transaction: Transaction, conditions: Conditions, since: int | None, limit: int | None
    ) -> tuple[list[dict[str, Any]], int]:
        all_conditions = [*conditions, *own] if since is None else [*conditions, *own, created >= since]
        query = with_task(log.table).where(*all_conditions)
        newest = query.order_by(created.desc(), log.table.c.position.desc()).limit(limit)
        return [log.view(row) for row in transaction.execute(newest)], count(transaction, query)

    return read


def _has_phase(transaction: Transaction, workflow_id: str, number: int) -> bool:
    query = select(phases.c.id).where(phases.c.workflow_id == workflow_id, phases.c.number == number)
    return transaction.execute(query).first() is not None


SECTIONS: dict[str, SectionReader] = {
    "tasks": _read_tasks,
    "decisions": _reader(LOGS["decisions"]),
    "milestones": _reader(LOGS["milestones"]),
    "blockers": _reader(LOGS["issues"], *WAITING),
}
