"""A whole workflow for people: all that is stored of it, and the same as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Row, Select, func, select

from deepwork_sql import Transaction
from deepwork_tracking.context import SECTIONS, WAITING, get_context
from deepwork_tracking.rows import find, issue_row, with_task
from deepwork_tracking.tables import issues, tasks, workflows
from deepwork_tracking.words import IN_PROGRESS, iso, iso_or_none

_SPECIAL = re.compile(r"([\\`*_\[\]<>&#|~])")
_FILE_MARKS = {"added": "A", "modified": "M", "deleted": "D"}


def list_workflows(transaction: Transaction, limit: int) -> list[dict[str, Any]]:
    """List workflows, the newest first."""
    return [row_of(row) for row in transaction.execute(workflow_rows().limit(limit))]


def workflow_rows() -> Select[Any]:
    """Select workflows with what lists show of their tasks, the newest first."""
    of_workflow = tasks.c.workflow_id == workflows.c.id
    counts = (
        _count(tasks, of_workflow).label("tasks"),
        _count(tasks, of_workflow, tasks.c.status == IN_PROGRESS).label("running"),
        _count(issues, issues.c.workflow_id == workflows.c.id, *WAITING).label("blockers"),
    )
    return select(workflows, *counts).order_by(workflows.c.created_at.desc(), workflows.c.position.desc())


def row_of(row: Row[Any]) -> dict[str, Any]:
    """Show a workflow of `workflow_rows` in a list."""
    return {
        "workflow_id": row.id,
        "workflow_name": row.name,
        "workflow_status": row.status,
        "current_phase": row.current_phase,
        "total_phases": row.total_phases,
        "tasks": {"total": row.tasks, "in_progress": row.running},
        "blockers": row.blockers,
        "created_at": iso(row.created_at),
        "completed_at": iso_or_none(row.completed_at),
    }


def workflow_report(transaction: Transaction, workflow_id: str) -> dict[str, Any]:
    """Return all that is stored of a workflow.

    Raises:
        NotFound: There is no such workflow.
    """
    workflow = find(transaction, workflows, workflow_id)
    report = get_context(transaction, workflow_id, ["phase_summary", *SECTIONS], limit=None)
    of_workflow = select(tasks.c.id, tasks.c.files_changed, tasks.c.verification).where(
        tasks.c.workflow_id == workflow_id
    )
    files = {row.id: row for row in transaction.execute(of_workflow)}
    for task in report["tasks"]:
        task["files_changed"] = files[task["id"]].files_changed
        task["verification"] = files[task["id"]].verification
    logged = with_task(issues).where(issues.c.workflow_id == workflow_id)
    newest = logged.order_by(issues.c.created_at.desc(), issues.c.position.desc())
    about = {
        "profile": workflow.profile,
        "objective": workflow.objective,
        "scope": workflow.scope,
        "constraints": workflow.constraints,
        "created_at": iso(workflow.created_at),
        "completed_at": iso_or_none(workflow.completed_at),
        "metrics": workflow.metrics,
        "issues": [issue_row(row) for row in transaction.execute(newest)],
    }
    return report | about


def markdown(report: dict[str, Any]) -> str:
    """Write a report as Markdown. What agents have written is escaped, and cannot change the page."""
    return "\n".join([*_head(report), *_phases(report), *_decisions(report), *_issues(report), *_milestones(report)])


def file_lines(files: dict[str, list[str]] | None) -> list[tuple[str, str]]:
    """Return the files of a task, each with the letter of its change, sorted by path."""
    lines = [(path, _FILE_MARKS[word]) for word, paths in (files or {}).items() for path in paths]
    return [(mark, path) for path, mark in sorted(lines)]


def _head(report: dict[str, Any]) -> Iterator[str]:
    yield f"# {_inline(report['workflow_name'])}"
    yield ""
    times = f"{report['created_at']} to {report['completed_at']}" if report["completed_at"] else report["created_at"]
    yield f"{report['workflow_status']}, {times}, `{report['workflow_id']}`"
    for title in ("objective", "scope", "constraints", "summary"):
        yield from _section(title.title(), report.get(title))
    for title in ("achievements", "limitations"):
        yield from _items(f"## {title.title()}", report.get(title))
    if metrics := report["metrics"]:
        yield from _items("## Metrics", [f"{name.replace('_', ' ')}: {value}" for name, value in metrics.items()])


def _phases(report: dict[str, Any]) -> Iterator[str]:
    for phase in report["phase_summary"]:
        yield ""
        yield f"## Phase {phase['phase_number']}: {_inline(phase['phase_name'])} ({phase['status']})"
        for name in ("description", "summary"):
            yield from _quoted(phase.get(name))
        for task in report["tasks"]:
            if task["phase_id"] == phase["phase_id"]:
                yield from _task(task)


def _task(task: dict[str, Any]) -> Iterator[str]:
    who = task["agent_name"] or task["caller_type"].lower()
    seconds = task["duration_seconds"]
    yield ""
    yield f"### {_inline(task['name'])} ({task['status']})"
    yield ""
    yield f"{_inline(who)}, {'running' if seconds is None else f'{seconds} s'}, `{task['id']}`"
    yield from _quoted(task["goal"])
    yield from _quoted(task["summary"])
    for name in ("achievements", "limitations", "next_steps", "packages_added"):
        yield from _items(f"{name.replace('_', ' ').capitalize()}:", task.get(name))
    if task.get("tests_status"):
        yield from _items("Tests:", [task["tests_status"]])
    if task["manual_review_needed"]:
        yield from ("", "**A person has to look at this.**")
    yield from _files(task)


def _files(task: dict[str, Any]) -> Iterator[str]:
    lines = [f"- {mark} {_code(path)}" for mark, path in file_lines(task["files_changed"])]
    if lines:
        yield from ("", "Files:", "", *lines)
    if task["verification"]:
        yield from _items("Warnings:", task["verification"]["warnings"])


def _decisions(report: dict[str, Any]) -> Iterator[str]:
    if report["decisions"]:
        yield from ("", "## Decisions")
    for decision in reversed(report["decisions"]):
        yield from ("", f"### {_inline(decision['question'])}", "")
        yield f"**{_inline(decision['chosen'])}** ({decision['category']}, {_inline(decision['task_name'])})"
        yield from _quoted(decision["reasoning"])
        yield from _items("Considered:", decision["options_considered"])
        yield from _quoted(decision["trade_offs"])


def _issues(report: dict[str, Any]) -> Iterator[str]:
    if report["issues"]:
        yield from ("", "## Issues")
    waiting = {blocker["id"] for blocker in report["blockers"]}
    for issue in reversed(report["issues"]):
        state = "waits for a person" if issue["id"] in waiting else _resolved(issue)
        yield from ("", f"### {issue['type']}: {_inline(issue['task_name'])}{f' ({state})' if state else ''}")
        yield from _quoted(issue["description"])
        yield from _quoted(issue["resolution"])
        yield from _quoted(issue.get("resolved_note"))


def _resolved(issue: dict[str, Any]) -> str:
    return f"resolved by {_inline(issue['resolved_by'])}" if "resolved_by" in issue else ""


def _milestones(report: dict[str, Any]) -> Iterator[str]:
    lines = [
        f"{item['created_at']} {item['task_name']}: {item['message']}"
        + (f" ({item['progress']} %)" if item["progress"] is not None else "")
        for item in reversed(report["milestones"])
    ]
    yield from _items("## Milestones", lines)
    yield ""


def _section(title: str, text: str | None) -> Iterator[str]:
    if text:
        yield from ("", f"## {title}", *_quoted(text))


def _items(title: str, items: Iterable[str] | None) -> Iterator[str]:
    lines = [f"- {_inline(item)}" for item in items or ()]
    if lines:
        yield from ("", title, "", *lines)


def _quoted(text: str | None) -> Iterator[str]:
    if text:
        yield ""
        yield from (f"> {_inline(line)}".rstrip() for line in text.splitlines())


def _inline(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(path: str) -> str:
    """Write a path as code; one with a backtick needs a longer fence."""
    fence = "`" * (1 + max(map(len, re.findall("`+", path)), default=0))
    pad = " " if "`" in path else ""
    return f"{fence}{pad}{' '.join(path.splitlines())}{pad}{fence}"


def _count(table: Any, *conditions: Any) -> Any:
    return select(func.count()).select_from(table).where(*conditions).scalar_subquery()
