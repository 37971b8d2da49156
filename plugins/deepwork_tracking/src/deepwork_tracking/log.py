"""What tasks log: decisions, issues and milestones; and issues that a person has resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import Row, Table, insert, update

from deepwork_sql import Transaction, new_id
from deepwork_tracking.arguments import check_metadata
from deepwork_tracking.database import TrackingDatabase
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.rows import decision_row, find, issue_row, milestone_row, with_task
from deepwork_tracking.tables import decisions, issues, milestones, tasks
from deepwork_tracking.words import iso, stored
from deepwork_tracking.workflows import emit


class Log(NamedTuple):
    """One kind of what tasks log.

    Attributes:
        name: What events and replies call one.
        prefix: The beginning of their ids.
        table: Where they are stored.
        view: Shows a row of it.
        texts: The columns in which people search.
    """

    name: str
    prefix: str
    table: Table
    view: Callable[[Row[Any]], dict[str, Any]]
    texts: tuple[str, ...]


LOGS = {
    "decisions": Log("decision", "dec", decisions, decision_row, ("question", "chosen", "reasoning")),
    "issues": Log("issue", "iss", issues, issue_row, ("description", "resolution")),
    "milestones": Log("milestone", "mil", milestones, milestone_row, ("message",)),
}


def log_decision(transaction: Transaction, category: str, **values: Any) -> dict[str, Any]:
    """Write down a decision of a task, which may have ended.

    Raises:
        NotFound: There is no such task.
    """
    values["options_considered"] = values["options_considered"] or []
    return _log(transaction, LOGS["decisions"], category=stored(category), **values)


def log_issue(transaction: Transaction, type: str, **values: Any) -> dict[str, Any]:  # noqa: A002 - the name of the tool
    """Write down a problem of a task, which may have ended.

    Raises:
        NotFound: There is no such task.
    """
    values["requires_human_review"] = bool(values["requires_human_review"])
    return _log(transaction, LOGS["issues"], type=stored(type), **values)


def log_milestone(transaction: Transaction, metadata: dict[str, Any] | None, **values: Any) -> dict[str, Any]:
    """Write down how far a task is; it may have ended.

    Raises:
        NotFound: There is no such task.
        InvalidCall: The metadata are too large.
    """
    check_metadata(metadata)
    return _log(transaction, LOGS["milestones"], metadata=metadata, **values)


def _log(transaction: Transaction, kind: Log, task_id: str, principal: str, **values: Any) -> dict[str, Any]:
    name, prefix, table, view, _ = kind
    task = find(transaction, tasks, task_id)
    row = {"id": new_id(prefix), "workflow_id": task.workflow_id, "task_id": task_id, "created_at": transaction.now}
    transaction.execute(insert(table).values(**values, **row))
    data = view(_logged(transaction, table, row["id"]))
    emit(transaction, f"{name}:created", task.workflow_id, data, principal)
    return {f"{name}_id": row["id"], "task_id": task_id, "created_at": iso(transaction.now)}


async def resolve(database: TrackingDatabase, issue_id: str, by: str, note: str | None) -> dict[str, Any]:
    """Take a blocker off the list, for a person, and return it.

    Raises:
        NotFound: There is no such issue.
        InvalidCall: It does not wait for a person, or was resolved before; or a text cannot be stored.
    """
    database.check({"by": by, "note": note})
    return await database.write(lambda transaction: _resolve(transaction, issue_id, by, note))


def _resolve(transaction: Transaction, issue_id: str, by: str, note: str | None) -> dict[str, Any]:
    transaction.lock(f"tracking:{issue_id}")
    issue = find(transaction, issues, issue_id)
    if not issue.requires_human_review:
        raise InvalidCall(f"issue {issue_id!r} is not a blocker: it does not require a human review")
    if issue.resolved_at is not None:
        raise InvalidCall(f"issue {issue_id!r} was resolved by {issue.resolved_by} at {iso(issue.resolved_at)}")
    values = {"resolved_at": transaction.now, "resolved_by": by, "resolved_note": note}
    transaction.execute(update(issues).where(issues.c.id == issue_id).values(values))
    issue_view = issue_row(_logged(transaction, issues, issue_id))
    emit(transaction, "issue:updated", issue.workflow_id, issue_view, by)
    return issue_view


def _logged(transaction: Transaction, table: Table, row_id: str) -> Row[Any]:
    return transaction.execute(with_task(table).where(table.c.id == row_id)).one()
