"""What goes on: counts, what runs, who works, and what reviews have cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import Any

from starlette.requests import Request

from deepwork.errors import DeepWorkError
from deepwork_dashboard.answers import Mapped
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.inbox import InboxPages
from deepwork_dashboard.plans import Plans
from deepwork_dashboard.sessions import Sessions
from deepwork_dashboard.spending import Spending
from deepwork_dashboard.work import TrackedWork

MAX_ROWS = 20
MAX_AGENTS = 50


class Overview:
    """The endpoint `api/overview`."""

    def __init__(
        self, dashboard: Dashboard, inbox: InboxPages, sessions: Sessions, plans: Plans, work: TrackedWork
    ) -> None:
        self._dashboard = dashboard
        self._inbox = inbox
        self._sessions = sessions
        self._plans = plans
        self._work = work
        self._spending = Spending(dashboard)

    async def shown(self, request: Request) -> Mapped:
        """Show what there is; a database that does not answer hides nothing of the sessions."""
        principal, problems = principal_of(request), list[str]()
        summaries = await self._dashboard.summaries(principal)
        contents = await self._inbox.contents(principal)
        damaged = sum(item.kind == "damaged-session" for item in contents.items)
        by_status = {"active": 0, "completed": 0, "aborted": 0, "damaged": damaged}
        by_status |= Counter(summary.status.value for summary in summaries)
        counts: Mapped = {"inbox": contents.total, "sessions": by_status}
        active = [summary for summary in summaries if summary.is_active][:MAX_ROWS]
        overview: Mapped = {"counts": counts, "sessions": await self._sessions.rows(active)}
        for view, read in (("plans", self._plan_part), ("work", self._work_part)):
            if view in self._dashboard.views and (part := await _or_problem(read(), problems)):
                counts |= part.pop("counts")
                overview |= part
        problems += [f"{failure.source}: {failure.error}" for failure in contents.failures]
        spent = await self._spending.of(summaries)
        return {**overview, "spent": spent, "problems": sorted(set(problems))}

    async def _plan_part(self) -> Mapped:
        plans = await self._plans.list_plans("in_progress", limit=MAX_ROWS)
        agents = await self._plans.list_agents({"is_online": True}, limit=MAX_AGENTS)
        return {"counts": await self._plans.counts(), "plans": plans["items"], "agents": agents["items"]}

    async def _work_part(self) -> Mapped:
        work = await self._work.list_work("IN_PROGRESS", limit=MAX_ROWS)
        return {"counts": {"work": await self._work.counts()}, "work": work["items"]}


async def _or_problem(part: Awaitable[Mapped], problems: list[str]) -> Any:
    try:
        return await part
    except DeepWorkError as error:
        problems.append(error.message)
        return None
