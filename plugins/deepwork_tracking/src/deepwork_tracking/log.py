"""What tasks log: decisions, issues and milestones; and issues that a person has resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import Row, Table, insert, update

from deepwork_sql import Transaction, new_id
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.rows import decision_row, find, issue_row, milestone_row, with_task
from deepwork_tracking.tables import decisions, issues, milestones, tasks
from deepwork_tracking.words import iso
from deepwork_tracking.workflows import emit


class _Kind(NamedTuple):
    """What can be logged: its name, the beginning of its ids, its table, and how a row of it is shown."""

    name: str
    prefix: str
    table: Table
    view: Callable[[Row[Any]], dict[str, Any]]


_DECISION = _Kind("decision", "dec", decisions, decision_row)
_ISSUE = _Kind("issue", "iss", issues, issue_row)
_MILESTONE = _Kind("milestone", "mil", milestones, milestone_row)


def log_decision(transaction: Transaction, task_id: str, *, principal: str, **values: Any) -> dict[str, Any]:
    """Write down a decision of a task, which may have ended.

    Raises:
        NotFound: There is no such task.
    """
    return _log(transaction, _DECISION, task_id, values, principal)


def log_issue(transaction: Transaction, task_id: str, *, principal: str, **values: Any) -> dict[str, Any]:
    """Write down a problem of a task, which may have ended.

    Raises:
        NotFound: There is no such task.
    """
    return _log(transaction, _ISSUE, task_id, values, principal)


def log_milestone(transaction: Transaction, task_id: str, *, principal: str, **values: Any) -> dict[str, Any]:
    """Write down how far a task is; it may have ended.

    Raises:
        NotFound: There is no such task.
    """
    return _log(transaction, _MILESTONE, task_id, values, principal)


def resolve_issue(transaction: Transaction, issue_id: str, *, by: str, note: str | None) -> dict[str, Any]:
    """Take a blocker off the list, for a person.

    Raises:
        NotFound: There is no such issue.
        InvalidCall: It does not wait for a person, or was resolved before.
    """
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


def _log(transaction: Transaction, kind: _Kind, task_id: str, values: dict[str, Any], principal: str) -> dict[str, Any]:
    task = find(transaction, tasks, task_id)
    row = {
        **values,
        "id": new_id(kind.prefix),
        "workflow_id": task.workflow_id,
        "task_id": task_id,
        "created_at": transaction.now,
    }
    transaction.execute(insert(kind.table).values(row))
    data = kind.view(_logged(transaction, kind.table, row["id"]))
    emit(transaction, f"{kind.name}:created", task.workflow_id, data, principal)
    return {f"{kind.name}_id": row["id"], "task_id": task_id, "created_at": iso(transaction.now)}


def _logged(transaction: Transaction, table: Table, row_id: str) -> Row[Any]:
    return transaction.execute(with_task(table).where(table.c.id == row_id)).one()
