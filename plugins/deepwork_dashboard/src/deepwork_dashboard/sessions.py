"""Sessions: the list, one with its steps, its history, and the files that its steps have made."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.requests import Request

from deepwork.api import Session, SessionSummary, standing_in
from deepwork.errors import ArgumentError
from deepwork.models.sessions import BegunInput
from deepwork.models.standing import Standing
from deepwork.sessions.standing import agent_of, paused, standing_of, step_state
from deepwork.text import is_past
from deepwork_dashboard.answers import Mapped, cut, intervention_of, iso_text, matches, words_of
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.entries import author_of, override_of, reviews_of
from deepwork_dashboard.event_words import event_words
from deepwork_dashboard.pieces import Pieces
from deepwork_dashboard.previews import preview
from deepwork_dashboard.runs import Runs
from deepwork_dashboard.spending import Spent

STATUSES = ("active", "completed", "aborted", "archived")


class Sessions:
    """The endpoints below `api/sessions`."""

    def __init__(self, dashboard: Dashboard, runs: Runs, pieces: Pieces) -> None:
        self._dashboard = dashboard
        self._runs = runs
        self._pieces = pieces

    async def listed(self, request: Request) -> Mapped:
        """List sessions, the last changed first."""
        query, words = request.query_params, words_of(request)
        status, job, principal = query.get("status"), query.get("job"), principal_of(request)
        if status not in (None, *STATUSES):
            raise ArgumentError(f"status is {status[:40]!r}; it is one of: {', '.join(STATUSES)}")
        if status == "archived":
            archived = await (await self._dashboard.store()).archived()
            summaries = [summary for summary in archived if summary.principal == principal]
        else:
            summaries = await self._dashboard.summaries(principal)
        matching = [
            summary
            for summary in summaries
            if status in (None, "archived", summary.status)
            and job in (None, summary.job_name)
            and matches(words, summary.session_id, summary.workflow, summary.step_id, summary.goal)
        ]
        rows = cut(matching, request)
        rows["items"] = await self.rows(rows["items"])
        return rows

    async def rows(self, summaries: list[SessionSummary]) -> list[Mapped]:
        """Show sessions in a list; active ones with how far they are, what they wait for, and which agent works."""
        store, rows = await self._dashboard.store(), []
        for summary in summaries:
            standing = await standing_in(store, summary) if summary.is_active else None
            run = await self._runs.brief(summary, standing) if summary.is_active else None
            rows.append({**_head(summary), **_place(standing), "run": run})
        return rows

    async def one(self, request: Request) -> Mapped:
        """Show a session with its steps."""
        principal = principal_of(request)
        session = await self._dashboard.session(principal, request.path_params["session"])
        summary = session.summary()
        parents = await (await self._dashboard.store()).peek(session.parents[-20:])
        definition = session.definition
        return {
            **_head(summary),
            "goal": session.goal,
            "completed_at": iso_text(session.completed_at),
            **_place(standing_of(session) if session.is_active else None),
            "paused": _paused(session),
            "position": position(session),
            "instance_id": session.instance_id,
            "abort_reason": session.abort_reason,
            "branch_name": session.branch_name,
            "git": {"branch": session.git.branch, "commit": session.git.commit} if session.git else None,
            "strict": session.strict,
            "revision": session.revision,
            "job_info": definition.common_job_info if definition else None,
            "parents": [
                {
                    "id": parent.session_id,
                    "thing": f"session:{parent.session_id}",
                    "job": parent.job_name,
                    "workflow": parent.workflow_name,
                }
                for parent in parents
                if isinstance(parent, SessionSummary) and parent.principal == principal
            ],
            "run": await self._runs.of(session),
            "steps": steps(session, self._dashboard.max_attempts),
            "history_total": len(session.history),
        }

    async def history(self, request: Request) -> Mapped:
        """List what happened in a session, the newest first."""
        session = await self._dashboard.session(principal_of(request), request.path_params["session"])
        step, kind = request.query_params.get("step"), request.query_params.get("kind")
        entries = [
            {
                "number": number,
                "at": iso_text(entry.at),
                "kind": entry.kind,
                "what": event_words("core", f"session:{entry.kind}", entry.stored),
                "by": author_of(entry),
                "step": entry.step_id,
                "detail": entry.stored,
            }
            for number, entry in enumerate(session.history, start=1)
            if step in (None, entry.step_id) and kind in (None, entry.kind)
        ]
        return cut(entries[::-1], request)

    async def intervene(self, request: Request) -> Mapped:
        """Pause a session, let it go on, or say something to its agent, in the name of who has logged in."""
        action, text = await intervention_of(request, "pause", "unpause", "say")
        by = request.state.answerer
        session = await self._dashboard.session(principal_of(request), request.path_params["session"])
        people = self._dashboard.project.interventions()
        if action == "unpause":
            await people.unpause(session, text or None, by)
            return {"done": "The session goes on"}
        if action == "pause":
            await people.pause(session, text, by)
            return {"done": "The session is paused; its agent is told so at its next call"}
        await people.say(session, text, by)
        return {"done": "The agent is told at its next call"}

    async def preview(self, request: Request) -> Mapped:
        """Show a file that a step has reported."""
        session = await self._dashboard.session(principal_of(request), request.path_params["session"])
        step, path = request.query_params.get("step", ""), request.query_params.get("path", "")
        if "attempt" in request.query_params and step in session.step_progress:
            return await self._pieces.preview(session, step, path, request.query_params)
        return await preview(session, step, path, self._dashboard.context.workspace)


def _place(standing: Standing | None) -> Mapped:
    """Show where an active session stands; a session that is over does not wait."""
    return {
        "position": list(standing.place) if standing and standing.place else None,
        "waits": bool(standing and standing.waits),
        "limit": _limit(standing),
        "last_call_at": iso_text(standing.last_call_at) if standing else None,
        "gone_at": iso_text(standing.gone_at) if standing and standing.gone_at else None,
    }


def _paused(session: Session) -> str | None:
    """Return why a person has paused a session; None if it is not paused, or is over."""
    pause = paused(session) if session.is_active else None
    return (pause.reason or "They have not said why.") if pause else None


def _limit(standing: Standing | None) -> Mapped | None:
    """Show until when a session waits by itself; None if it does not."""
    pause = standing.pause if standing else None
    if pause is None or is_past(pause.until, datetime.now(UTC)):
        return None
    return {"until": iso_text(pause.until), "cause": pause.cause}


def position(session: Session) -> list[int] | None:
    """Return the number of the current entry and of all entries; None if the workflow is not known any more."""
    if session.definition is None:
        return None
    entries = session.definition.workflow.entries
    number = len(entries) if session.status == "completed" else session.current_entry_index + 1
    return [min(number, len(entries)), len(entries)]


def steps(session: Session, max_attempts: int | None) -> list[Mapped]:
    """Show all steps of a session, also future ones."""
    if session.definition is None:
        return [_step(session, step_id, 0, [step_id], max_attempts) for step_id in session.step_progress]
    entries = session.definition.workflow.entries
    return [
        _step(session, step_id, number, entry, max_attempts)
        for number, entry in enumerate(entries)
        for step_id in entry
    ]


def _head(summary: SessionSummary) -> Mapped:
    return {
        "id": summary.session_id,
        "thing": f"session:{summary.session_id}",
        "job": summary.job_name,
        "workflow": summary.workflow_name,
        "step": summary.step_id,
        "goal": summary.goal,
        "status": summary.status.value,
        "started_at": iso_text(summary.started_at),
        "updated_at": iso_text(summary.updated_at),
        "principal": summary.principal,
    }


def _step(session: Session, step_id: str, number: int, entry: list[str], max_attempts: int | None) -> Mapped:
    progress = session.step_progress.get(step_id)
    declared = session.definition.steps.get(step_id) if session.definition else None
    entries = [item for item in session.history if item.step_id == step_id]
    reviews = reviews_of(session, step_id, declared)
    spent = Spent()
    spent.add_all(entries)
    begun = progress.begun if progress else None
    shown: Mapped = {
        "id": step_id,
        "name": declared.name if declared else step_id,
        "description": declared.description if declared else None,
        "entry": number,
        "group": len(entry) > 1,
        "state": step_state(session, step_id).value,
        "agent": agent_of(session, step_id),
        "started_at": iso_text(progress.started_at) if progress else None,
        "completed_at": iso_text(progress.completed_at) if progress else None,
        "attempts": progress.quality_attempts if progress else 0,
        "max_attempts": max_attempts,
        "runner_failures": progress.runner_failures if progress else 0,
        "override": override_of(entries, progress),
        "notes": progress.notes if progress else None,
        "instructions": begun.instructions if begun else None,
        "inputs": [_input(item) for item in (begun.inputs if begun else ())],
        "declared_outputs": [
            {"name": name, "type": output.type, "required": output.required, "description": output.description}
            for name, output in (declared.outputs if declared else {}).items()
        ],
        "outputs": [
            {"name": name, "files": [{"path": path} for path in ([value] if isinstance(value, str) else value)]}
            for name, value in (progress.outputs if progress else {}).items()
        ],
        "reviews": reviews,
        "review_count": len(declared.reviews) if declared else 0,
        "spent": spent.brief(),
    }
    return shown


def _input(item: BegunInput) -> Mapped:
    """Show an input as the step was begun with it."""
    return {
        "name": item.name,
        "description": item.description,
        "from_step": item.from_step,
        "paths": [item.path] if isinstance(item.path, str) else list(item.path or ()),
    }
