"""`deepwork sessions verify`: whether finished work is what was judged."""

from __future__ import annotations

import sys
from typing import Any

import click

from deepwork.api import Session, SessionStatus, StateStore, project_at
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import Styled, say, say_json
from deepwork.models.reviews import proof_words
from deepwork.models.standing import GateRecord


@click.command()
@click.argument("session_id", required=False)
@path_option
@json_option
def verify(session_id: str | None, root: str, as_json: bool) -> int:
    """Check that every gate of a finished session was judged on the files as they are now.

    Without an id all finished sessions are checked. Exits with 1 if there is an exception, and lists each.
    """
    project = project_at(root)

    async def finished(store: StateStore) -> list[Session]:
        summaries = await store.find(status=SessionStatus.COMPLETED, limit=sys.maxsize)
        loaded = [await store.load(summary.session_id) for summary in summaries]
        return [session for session in loaded if session]

    sessions = [project.session(session_id)] if session_id else project.with_store(finished)
    reports = [(session, project.verified(session)) for session in sessions]
    verified = not any(record.exceptions for _, records in reports for record in records)
    if as_json:
        say_json({"verified": verified, "sessions": [_facts(*report) for report in reports]})
        return 0 if verified else 1
    for session, records in reports:
        say(f"{session.session_id}  {session.workflow}")
        for record in records:
            _say_record(record)
    if not reports:
        say("No finished sessions.", err=True)
    return 0 if verified else 1


def _facts(session: Session, records: list[GateRecord]) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "workflow": session.workflow,
        "verified": not any(record.exceptions for record in records),
        "gates": [
            {
                "step_id": record.step_id,
                "standing": record.standing,
                "judges": list(record.judges),
                "proofs": list(record.proofs),
                "exceptions": list(record.exceptions),
            }
            for record in records
        ],
    }


def _say_record(record: GateRecord) -> None:
    mark = Styled("exception", "red") if record.exceptions else Styled("ok       ", "green")
    judges = f" by {', '.join(record.judges)}" if record.judges else ""
    say("  ", mark, f"  {record.step_id}: {record.standing}{judges}")
    for proof in record.proofs:
        say(f"             {proof['judge']}: {proof_words(proof['result'], proof['grade'])}")
    for text in record.exceptions:
        say(f"             {text}")
