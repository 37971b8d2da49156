"""What a run and its session come to, for commands and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from deepwork.api import Session
from deepwork.models.standing import Standing
from deepwork.sessions.standing import standing_of
from deepwork_run.record import Record, Run, Worker


def described(session: Session | None, record: Record) -> dict[str, Any]:
    """Return all that is known of a run, as `runs show --json` prints it; `session` is None if it has gone."""
    run = record.read()
    standing = standing_of(session) if session else None
    return {
        "session_id": record.session_id,
        "workflow": session.workflow if session else None,
        "goal": session.goal if session else None,
        "status": session.status.value if session else None,
        "position": standing.position if standing else "",
        "step_id": session.current_step_id if session else None,
        **now_of(run, record.runner(), standing if session and session.is_active else None),
        "agents": {name: run.totals(name) for name in sorted({worker.agent for worker in run.workers})},
        "workers": [asdict(worker) for worker in run.workers],
        "spent": [*run.spent.values()],
        "options": run.options,
        "exit_code": run.exit_code,
    }


def now_of(run: Run, runner: int | None, standing: Standing | None) -> dict[str, Any]:
    """Return what a run does now; `standing` is that of its session, None if the session is over."""
    works = next((worker for worker in run.workers if worker.ended_at is None), None) if runner else None
    return {
        "state": _state(run, runner, standing, works),
        "runner": runner,
        "agent": works.agent if works else None,
        "since": works.started_at if works else None,
        "waiting": asdict(standing.pause) if standing and standing.pause else None,
        "paused": asdict(run.pause) if run.is_asking and run.pause else None,
        "totals": run.totals(),
    }


def _state(run: Run, runner: int | None, standing: Standing | None, works: Worker | None) -> str:
    if runner is None:
        return "ended" if run.exit_code is not None else "interrupted"
    if works:
        return "running"
    return "paused" if run.is_asking or (standing and standing.waits) else "waiting"


def used(totals: Mapping[str, Any]) -> str:
    """Return what was used, for people: tokens, and dollars where they are known."""
    cost = "no dollars said" if totals["cost_usd"] is None else f"${totals['cost_usd']:.2f}"
    return f"{totals['input_tokens']:,} tokens in, {totals['output_tokens']:,} out, {cost}"
