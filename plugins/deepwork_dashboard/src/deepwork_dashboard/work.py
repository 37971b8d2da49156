"""Tracked work: what agents have recorded of phases, tasks, files, decisions, issues and milestones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request

from deepwork.errors import ArgumentError
from deepwork_dashboard.answers import Mapped, chosen, page_of
from deepwork_dashboard.dashboard import Dashboard
from deepwork_dashboard.database_views import DatabaseViews

LOGS = ("decisions", "issues", "milestones")


class TrackedWork(DatabaseViews):
    """The endpoints below `api/work`."""

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__(dashboard, "tracking", "deepwork_tracking.views")

    async def all_work(self, request: Request) -> Mapped:
        """List tracked workflows, the newest first."""
        return await self.list_work(request.query_params.get("status"), **page_of(request))

    async def list_work(self, status: str | None = None, **asked: Any) -> Mapped:
        """List tracked workflows of a status, or all."""
        return await self.listed("all_work", _row, asked, status)

    async def work(self, request: Request) -> Mapped:
        """Show a tracked workflow with its phases."""
        work = await self.read("work", request.path_params["work"])
        names = ("profile", "scope", "constraints", "summary", "achievements", "limitations", "metrics", "counts")
        return {**_row(work), **chosen(work, *names), "phase_list": [_phase(phase) for phase in work["phases"]]}

    async def tasks(self, request: Request) -> Mapped:
        """List the tasks of a tracked workflow, with their first files."""
        query = request.query_params
        filters = (await self.views()).TaskFilter(
            _number("phase", query.get("phase")), query.get("status"), query.get("agent")
        )
        return await self.listed("work_tasks", _task, page_of(request), request.path_params["work"], filters)

    async def task(self, request: Request) -> Mapped:
        """Show a task with all its files."""
        return _task(await self.read("work_task", request.path_params["work"], request.path_params["task"]))

    def log(self, kind: str) -> Callable[[Request], Awaitable[Mapped]]:
        """Make the endpoint of one kind of what tasks log."""

        async def listed(request: Request) -> Mapped:
            return await self.listed("work_log", _entry, page_of(request), request.path_params["work"], kind)

        return listed

    async def counts(self) -> Mapped:
        """Count tracked workflows by their status."""
        return await self.counted("work_counts")


def _number(name: str, text: str | None) -> int | None:
    if text is None or (text.isascii() and text.isdecimal() and len(text) < 10):
        return None if text is None else int(text)
    raise ArgumentError(f"{name} is {text[:20]!r}; it is a number")


def _row(row: Mapped) -> Mapped:
    return {
        "id": row["workflow_id"],
        "thing": f"work:{row['workflow_id']}",
        "name": row["workflow_name"],
        "objective": row["objective"],
        "status": row["workflow_status"],
        "phase": row["current_phase"],
        "phases": row["total_phases"],
        **chosen(row, "tasks", "blockers", "created_at", "completed_at"),
    }


def _phase(row: Mapped) -> Mapped:
    return {
        "id": row["phase_id"],
        "number": row["phase_number"],
        "name": row["phase_name"],
        "parallel": row["is_parallel"],
        "seconds": row["duration_seconds"],
        **chosen(row, "description", "summary", "status", "started_at", "completed_at", "tasks"),
    }


def _task(row: Mapped) -> Mapped:
    names = ("id", "phase_id", "name", "goal", "status", "caller_type", "summary", "tests_status", "parent_task_id")
    times = ("started_at", "completed_at", "manual_review_needed", "files", "files_total", "warnings")
    lists = ("areas", "achievements", "limitations", "next_steps", "packages_added")
    return {
        **chosen(row, *names, *times),
        **{name: row.get(name) or [] for name in lists},
        "phase": row["phase_number"],
        "agent": row["agent_name"],
        "seconds": row["duration_seconds"],
    }


def _entry(row: Mapped) -> Mapped:
    names = {"task_name": "task", "agent_name": "agent", "created_at": "at", "options_considered": "options"}
    return {names.get(name, name): value for name, value in row.items()}
