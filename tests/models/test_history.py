"""The history of a session: typed for its readers, and stored as it was written."""

from __future__ import annotations

import json

import pytest

from deepwork.api import NeedsWork, history
from deepwork.models.history import DETAILS, EventKind, HistoryEntry
from deepwork.models.sessions import Session

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


def test_every_kind_has_a_model():
    assert {*DETAILS} == {*EventKind}


def test_an_entry_is_stored_as_four_keys_and_only_what_is_known_of_it():
    entry = HistoryEntry.of(history.NoVerdict(kind="RunnerTimeout", error="late"), "now", "a")
    stored = {"at": "now", "kind": "infrastructure", "step_id": "a"}
    assert json.loads(entry.model_dump_json()) == {**stored, "detail": {"kind": "RunnerTimeout", "error": "late"}}


async def test_what_a_later_release_has_written_survives_a_save(demo, stored):
    later = [
        {"at": "2027", "kind": "teleported", "step_id": "a", "detail": {"to": ["Mars", {"lat": 1.5}]}, "who": None},
        {"at": "2027", "kind": "attempt", "step_id": "a", "detail": {"number": "third", "colour": "red"}, "by": [1]},
    ]
    async with demo.agent() as agent:
        await agent.start()
        session = stored()
        session["history"] += later
        (demo.state / f"session_{session['session_id']}.json").write_text(json.dumps(session, indent=2) + "\n")
        await agent.call("abort_workflow", explanation="enough")
    assert [entry for entry in stored()["history"] if entry["at"] == "2027"] == later


def test_a_detail_of_another_shape_is_kept_and_read_as_nothing():
    detail = {"passed": "yes", "criteria": 5}
    entry = HistoryEntry(at="now", kind="verdict", detail=detail)
    assert isinstance(entry.detail, history.Unknown)
    assert entry.model_dump()["detail"] == detail


async def test_an_attempt_says_under_which_limits_it_is_judged_and_the_last_verdict_that_the_user_was_asked(
    reviewed, judge, served, stored
):
    runner = judge(lambda _: NeedsWork("No"))
    async with reviewed.agent(served(runner, quality_gate_max_attempts=2)) as agent:
        await agent.start()
        await agent.finish(DONE)
        reviewed.write("a.md", "better")
        await agent.refused("finished_step", outputs=DONE)
    details = [entry.detail for entry in Session.model_validate(stored()).history]
    attempts = [detail for detail in details if isinstance(detail, history.Attempt)]
    limits = {"max_attempts": 2, "max_failures": 3, "strict": False, "files": ["a.md"]}
    limits_of = [attempt.model_dump(include={"number", *limits}) for attempt in attempts]
    assert limits_of == [
        {"number": 1, **limits},
        {"number": 2, **limits},
    ]
    assert [detail.asks_user for detail in details if isinstance(detail, history.Verdict)] == [None, True]
