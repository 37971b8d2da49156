"""One search for everything that has a name."""

from __future__ import annotations

from starlette.requests import Request

from deepwork.errors import StorageError
from deepwork_dashboard.answers import Mapped, iso_text, matches, short, words_of
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.plans import Plans
from deepwork_dashboard.work import TrackedWork

MAX_OF_A_KIND = 10


class Search:
    """The endpoint `api/search`."""

    def __init__(self, dashboard: Dashboard, plans: Plans, work: TrackedWork) -> None:
        self._dashboard = dashboard
        self._plans = plans
        self._work = work

    async def found(self, request: Request) -> Mapped:
        """Find sessions, plans, tasks, tracked work and agents; without words nothing."""
        words = words_of(request)
        if not words:
            return {"items": [], "problems": []}
        items, problems = await self._sessions(principal_of(request), words), []
        try:
            items += await self._of_plans(words) if "plans" in self._dashboard.views else []
            items += await self._of_work(words) if "work" in self._dashboard.views else []
        except StorageError as error:
            problems.append(error.message)
        return {"items": items, "problems": problems}

    async def _sessions(self, principal: str, words: list[str]) -> list[Mapped]:
        matching = [
            summary
            for summary in await self._dashboard.summaries(principal)
            if matches(words, summary.session_id, summary.workflow, summary.step_id, summary.goal)
        ]
        return [
            _item(
                "session",
                session.session_id,
                session.goal,
                f"{session.status} in {session.workflow}",
                iso_text(session.updated_at),
            )
            for session in matching[:MAX_OF_A_KIND]
        ]

    async def _of_plans(self, words: list[str]) -> list[Mapped]:
        plans = await self._plans.list_plans(words=words, limit=MAX_OF_A_KIND)
        agents = await self._plans.list_agents({}, words=words, limit=MAX_OF_A_KIND)
        tasks = await self._plans.find_tasks(words=words, limit=MAX_OF_A_KIND)
        matching = [
            _item("plan", plan["id"], plan["name"], plan["status"], plan["updated_at"]) for plan in plans["items"]
        ]
        for task in tasks["items"]:
            detail = f"{task['status']} in {task['plan_name']}"
            matching.append(_item("task", task["id"], task["name"], detail, task["updated_at"]))
        return matching + [
            _item("agent", agent["id"], agent["name"], agent["status"], agent["last_heartbeat"])
            for agent in agents["items"]
        ]

    async def _of_work(self, words: list[str]) -> list[Mapped]:
        work = await self._work.list_work(words=words, limit=MAX_OF_A_KIND)
        return [_item("work", row["id"], row["name"], row["status"], row["created_at"]) for row in work["items"]]


def _item(kind: str, thing_id: str, title: str, detail: str, at: str | None) -> Mapped:
    return {"thing": f"{kind}:{thing_id}", "kind": kind, "title": short(title), "detail": short(detail), "at": at}
