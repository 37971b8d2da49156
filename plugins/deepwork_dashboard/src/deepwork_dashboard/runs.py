"""Runs: which agent works on a session, since when, what it has cost and waits for, and what people do about it."""

from __future__ import annotations

import time
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from anyio import to_thread
from starlette.requests import Request

from deepwork.api import Session, SessionSummary
from deepwork.errors import ArgumentError, DeepWorkError, StorageError
from deepwork.models.standing import Standing
from deepwork.ports.call import LOCAL
from deepwork_dashboard.answers import Conflict, Mapped, chosen, iso_text, json_body
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.recent import Recent

PLUGIN = "run"
# The programs of agents are looked for so often.
AGENTS_SECONDS = 60.0
# So many runs, the last changed, are looked at for changes.
MAX_WATCHED = 50
ACTIONS = ("continue", "stop")


class Runs:
    """The runs of a project, as its sessions show them, and the endpoint `api/sessions/ID/run`."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._known: Recent[Any] = Recent(500)
        self._agents: tuple[float, list[str]] = (0.0, [])

    async def of(self, session: Session) -> Mapped | None:
        """Show the run of a session, and which agents could go on with it; None without the plugin."""
        if not self._has_runs(session):
            return None
        shown = await self._dashboard.module(PLUGIN, "deepwork_run.shown")
        try:
            run = await to_thread.run_sync(shown.described, session, await self._record(session.session_id))
        except StorageError:  # the session can be read, and is what people came for
            return None
        names = [worker["agent"] for worker in run["workers"]]
        agents = {name: {"name": name, "starts": names.count(name), **run["agents"][name]} for name in names}
        return {
            **_now(run, names[-1] if names else None),
            "asks": run["paused"] and chosen(run["paused"], "kind", "what"),
            "last_end": run["workers"][-1]["end"] if names else None,
            "agents": [*agents.values()],
            "exit_code": run["exit_code"],
            "can_continue_with": await self._usable_agents() if session.is_active else [],
        }

    async def brief(self, summary: SessionSummary, standing: Standing | None) -> Mapped | None:
        """Show in a few words who works on a session, for lists; None if no agent was ever started for it."""
        if not self._has_runs(summary):
            return None
        shown = await self._dashboard.module(PLUGIN, "deepwork_run.shown")
        record = await self._record(summary.session_id)

        def read() -> Mapped | None:
            size, moment, runner = record.look()
            run = self._known.get((summary.session_id, size, moment)) or record.read()
            self._known.put((summary.session_id, size, moment), run)
            return _now(shown.now_of(run, runner, standing), run.workers[-1].agent) if run.workers else None

        with suppress(StorageError):
            return await to_thread.run_sync(read)
        return None

    async def stamps(self) -> dict[str, Hashable]:
        """Return what differs as soon as a run has changed, by the session of each."""
        if not self._dashboard.context.has(PLUGIN):
            return {}
        module = await self._dashboard.module(PLUGIN, "deepwork_run.record")

        def look() -> dict[str, Hashable]:
            newest = module.records(self._dashboard.demand(PLUGIN).workspace)[:MAX_WATCHED]
            return {record.session_id: record.look() for record in newest}

        return await to_thread.run_sync(look)

    async def act(self, request: Request) -> Mapped:
        """Have an agent go on with a session, or stop its run, in the name of who has logged in."""
        context, body = self._dashboard.demand(PLUGIN), await json_body(request)
        action, agent = body.get("action"), body.get("agent")
        if action not in ACTIONS:
            raise ArgumentError(f"action is one of: {', '.join(ACTIONS)}")
        session = await self._dashboard.session(principal_of(request), request.path_params["session"])
        request.state.answerer.check_person(f"{action} the run of a session")
        if session.principal != LOCAL:
            raise Conflict(f"agents on this machine are {LOCAL!r}, so none may go on with a session of somebody else")
        acts = await self._dashboard.module(PLUGIN, "deepwork_run.acts")
        try:
            if action == "stop":
                acts.stop_runner(await self._record(session.session_id))
                return {"done": "The run stops once its agent has finished its call"}
            if not session.is_active:
                raise Conflict(f"the session is {session.status}; there is nothing to go on with")
            usable = await self._usable_agents()
            if agent is not None and agent not in usable:
                raise ArgumentError(f"agent is null, or one of: {', '.join(usable)}")
            return {"done": await acts.go_on(context, session.session_id, agent)}
        except (ArgumentError, Conflict):
            raise
        except DeepWorkError as error:
            raise Conflict(error.message, hint=error.hint) from None

    def _has_runs(self, session: Session | SessionSummary) -> bool:
        return self._dashboard.context.has(PLUGIN) and session.principal == LOCAL

    async def _record(self, session_id: str) -> Any:
        module = await self._dashboard.module(PLUGIN, "deepwork_run.record")
        return module.Record(self._dashboard.demand(PLUGIN).workspace, session_id)

    async def _usable_agents(self) -> list[str]:
        looked_at, names = self._agents
        if not looked_at or time.monotonic() > looked_at + AGENTS_SECONDS:
            acts = await self._dashboard.module(PLUGIN, "deepwork_run.acts")
            names = await acts.usable_agents(self._dashboard.demand(PLUGIN))
            self._agents = time.monotonic(), names
        return names


def _now(run: Mapped, last_agent: str | None) -> Mapped:
    """Show what a run does now; the last agent is named even if it has ended."""
    return {
        "state": run["state"] if last_agent or run["runner"] else None,
        "agent": run["agent"] or last_agent,
        "since": iso_text(run["since"]),
        **run["totals"],
    }
