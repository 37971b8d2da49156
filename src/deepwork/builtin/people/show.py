"""`deepwork gate show`: what was reviewed in a session, for people, and as SARIF for editors and forges."""

from __future__ import annotations

from collections.abc import Iterator

import click

from deepwork.api import Session, history, project_at
from deepwork.builtin.people.sarif import session_log
from deepwork.commands.options import json_option, path_option, session_id_argument
from deepwork.commands.reviews import INDENT, say_review
from deepwork.commands.terminal import Styled, say, say_json, say_text
from deepwork.errors import StateError
from deepwork.models.history import EventKind, HistoryEntry
from deepwork.models.reviews import Finding, proof_words
from deepwork.models.standing import Passage

SHOWN_KINDS = (
    EventKind.ATTEMPT,
    EventKind.VERDICT,
    EventKind.INFRASTRUCTURE,
    EventKind.REVIEW_SKIPPED,
    EventKind.ATTEMPT_GIVEN_BACK,
    EventKind.REVIEW_HANDED_BACK,
    EventKind.PERSON_ASKED,
    EventKind.OVERRIDE,
    EventKind.SELF_REVIEW,
)


@click.command()
@session_id_argument
@click.argument("step_id", required=False)
@path_option
@json_option
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0, for editors and forges.")
def show(session_id: str, step_id: str | None, root: str, as_json: bool, as_sarif: bool) -> None:
    """Show what was reviewed in a session, or in one step of it: verdicts, missing ones, overrides."""
    project = project_at(root)
    session = project.session(session_id)
    entries = [*_entries(session, step_id)]
    if as_sarif:
        beginnings = [entry for entry in session.history if entry.kind == EventKind.STEP_BEGUN]
        say_json(session_log(session, sorted([*entries, *beginnings], key=session.history.index), project.root))
        return
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in entries])
        return
    for entry in entries:
        _say_entry(entry)
    if not entries:
        say("Nothing was reviewed.", err=True)


def _entries(session: Session, step_id: str | None) -> Iterator[HistoryEntry]:
    if step_id is not None and step_id not in session.step_progress:
        step_ids = ", ".join(session.step_progress)
        raise StateError(f"session {session.session_id!r} has not begun a step {step_id!r}; it has begun: {step_ids}")
    for entry in session.history:
        if entry.kind in SHOWN_KINDS and step_id in (None, entry.step_id):
            yield entry


def _say_entry(entry: HistoryEntry) -> None:
    detail = entry.detail
    if isinstance(detail, history.Verdict):
        say_review(detail.model_dump(), [Finding(**finding.model_dump()).shown for finding in detail.findings])
        if detail.passed:
            proof = detail.proof.model_dump() if detail.proof else {"result": None}
            say(f"{INDENT}{proof_words(**proof)}")
    elif isinstance(detail, history.NoVerdict):
        say_review({**detail.model_dump(), "passed": None, "feedback": detail.error, "criteria": []})
    elif isinstance(detail, history.Attempt):
        say(Styled(f"{entry.step_id}, attempt {detail.number}  {entry.at}", bold=True))
    else:
        text = getattr(detail, "reason", None) or getattr(detail, "feedback", None) or ""
        say_text(str(text), f"{entry.step_id}, {_event(detail)}: ")


def _event(detail: history.Detail | history.Unknown) -> str:
    """Return in words what has become of a review."""
    match detail:
        case history.Override() if detail.is_of_person:
            return f"{Passage.PERMITTED}, asked by {detail.asked_by}" if detail.asked_by else Passage.PERMITTED
        case history.Override():
            return "overridden before any review" if detail.before_review else "overridden"
        case history.SelfReview():
            return "self-review passed, by the agent's word"
        case history.Skipped():
            return "skipped"
        case history.HandedBack():
            return "handed back to the agent"
        case history.PersonAsked():
            return f"a person was asked, {detail.reference}"
        case history.GivenBack():
            return "the attempt does not count"
    return "not as this release writes it"
