"""Runs: the list, one with its steps, its history, and the files that its steps have made."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from deepwork.api import (
    ArgumentError,
    HistoryEntry,
    Session,
    SessionSummary,
    Standing,
    StepProgress,
    history,
    standing_in,
    standing_of,
    step_state,
)
from deepwork_dashboard.answers import Mapped, cut, iso_text, limit_of, matches, offset_of, words_of
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.previews import preview
from deepwork_dashboard.spending import Spent

STATUSES = ("active", "completed", "aborted", "archived")


class Runs:
    """The endpoints below `api/runs`."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def listed(self, request: Request) -> Mapped:
        """List runs, the last changed first."""
        query, words, limit, offset = request.query_params, words_of(request), limit_of(request), offset_of(request)
        status, job, principal = query.get("status"), query.get("job"), principal_of(request)
        if status not in (None, *STATUSES):
            raise ArgumentError(f"status is {status[:40]!r}; it is one of: {', '.join(STATUSES)}")
        if status == "archived":
            archived = await (await self._dashboard.store()).archived()
            summaries = [summary for summary in archived if summary.principal == principal]
        else:
            summaries = await self._dashboard.summaries(principal)
        found = [
            summary
            for summary in summaries
            if status in (None, "archived", summary.status)
            and job in (None, summary.job_name)
            and matches(words, summary.session_id, summary.workflow, summary.step_id, summary.goal)
        ]
        rows = cut(found, limit, offset)
        rows["items"] = await self.rows(rows["items"])
        return rows

    async def rows(self, summaries: list[SessionSummary]) -> list[Mapped]:
        """Show runs in a list; those that are active with how far they are, and whether they wait for a person."""
        store = await self._dashboard.store()
        return [
            {**_head(summary), **_place(await standing_in(store, summary) if summary.is_active else None)}
            for summary in summaries
        ]

    async def one(self, request: Request) -> Mapped:
        """Show a run with its steps."""
        principal = principal_of(request)
        session = await self._dashboard.run(principal, request.path_params["run"])
        summary = session.summary()
        parents = await (await self._dashboard.store()).peek(session.parents[-20:])
        definition = session.definition
        return {
            **_head(summary),
            "goal": session.goal,
            "completed_at": iso_text(session.completed_at),
            **_place(standing_of(session) if session.is_active else None),
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
                    "thing": f"run:{parent.session_id}",
                    "job": parent.job_name,
                    "workflow": parent.workflow_name,
                }
                for parent in parents
                if isinstance(parent, SessionSummary) and parent.principal == principal
            ],
            "steps": steps(session, self._dashboard.max_attempts),
            "history_total": len(session.history),
        }

    async def history(self, request: Request) -> Mapped:
        """List what happened in a run, the newest first."""
        session = await self._dashboard.run(principal_of(request), request.path_params["run"])
        step, kind = request.query_params.get("step"), request.query_params.get("kind")
        entries = [
            {
                "number": number,
                "at": iso_text(entry.at),
                "kind": entry.kind,
                "step": entry.step_id,
                "detail": entry.stored,
            }
            for number, entry in enumerate(session.history, start=1)
            if step in (None, entry.step_id) and kind in (None, entry.kind)
        ]
        return cut(entries[::-1], limit_of(request), offset_of(request))

    async def preview(self, request: Request) -> Mapped:
        """Show a file that a step has reported."""
        session = await self._dashboard.run(principal_of(request), request.path_params["run"])
        step, path = request.query_params.get("step", ""), request.query_params.get("path", "")
        return await preview(session, step, path, self._dashboard.context.workspace)


def _place(standing: Standing | None) -> Mapped:
    """Show where an active run stands; a run that is over waits for nobody."""
    return {
        "position": list(standing.place) if standing and standing.place else None,
        "waits": bool(standing and standing.waits),
        "last_call_at": iso_text(standing.last_call_at) if standing else None,
    }


def position(session: Session) -> list[int] | None:
    """Say at which of how many entries a run is; None if its workflow is not known any more."""
    if session.definition is None:
        return None
    entries = session.definition.workflow.entries
    number = len(entries) if session.status == "completed" else session.current_entry_index + 1
    return [min(number, len(entries)), len(entries)]


def steps(session: Session, max_attempts: int | None) -> list[Mapped]:
    """Show all steps of a run, also those that have not begun."""
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
        "thing": f"run:{summary.session_id}",
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
    reviews = _reviews(entries, declared)
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
        "started_at": iso_text(progress.started_at) if progress else None,
        "completed_at": iso_text(progress.completed_at) if progress else None,
        "attempts": progress.quality_attempts if progress else 0,
        "max_attempts": max_attempts,
        "runner_failures": progress.runner_failures if progress else 0,
        "override": _override(entries, progress),
        "notes": progress.notes if progress else None,
        "instructions": begun.instructions if begun else None,
        "inputs": [
            {
                "name": item.name,
                "description": item.description,
                "from_step": item.from_step,
                "paths": [item.path] if isinstance(item.path, str) else list(item.path or ()),
            }
            for item in (begun.inputs if begun else ())
        ],
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


def _override(entries: list[HistoryEntry], progress: StepProgress | None) -> Mapped | None:
    for entry in reversed(entries):
        match entry.detail:
            case history.SelfReview(reason=reason):
                return {"at": iso_text(entry.at), "reason": reason, "by": "self_review", "who": None}
            case history.Override() as override:
                who = override.user or override.principal
                by = override.by or "agent"
                return {"at": iso_text(entry.at), "reason": override.reason, "by": by, "who": who}
    reason = progress.override_reason if progress else None
    return {"at": None, "reason": reason, "by": "agent", "who": None} if reason else None


def _reviews(entries: list[HistoryEntry], declared: Any) -> list[Mapped]:
    """Show every verdict, and every time that there was none, with the number of its attempt."""
    questions = {
        name: question
        for review in (declared.reviews if declared else ())
        for name, question in review.quality_criteria.items()
    }
    reviews: list[Mapped] = []
    attempt = 0
    for entry in entries:
        match entry.detail:
            case history.Attempt(number=number):
                attempt = number or attempt + 1
            case history.Verdict() | history.NoVerdict() as conclusion:
                reviews.append({"at": iso_text(entry.at), "attempt": attempt or None, **_review(conclusion, questions)})
    return reviews


def _review(conclusion: history.Verdict | history.NoVerdict, questions: dict[str, str]) -> Mapped:
    verdict = conclusion if isinstance(conclusion, history.Verdict) else None
    error = conclusion if isinstance(conclusion, history.NoVerdict) else None
    return {
        "run_each": conclusion.run_each,
        "file": conclusion.file,
        "runner": conclusion.runner,
        "seconds": conclusion.seconds,
        "model": verdict.model if verdict else None,
        "input_tokens": verdict.input_tokens if verdict else None,
        "output_tokens": verdict.output_tokens if verdict else None,
        "cost_usd": verdict.cost_usd if verdict else None,
        "passed": verdict.passed if verdict else None,
        "reused": verdict.reused if verdict else False,
        "feedback": verdict.feedback if verdict else "",
        "error": error.error if error else None,
        "error_kind": error.error_kind if error else None,
        "criteria": [
            {
                "criterion": answer.criterion,
                "passed": answer.passed,
                "feedback": answer.feedback,
                "question": questions.get(answer.criterion),
            }
            for answer in (verdict.criteria if verdict else ())
        ],
    }
