"""Which steps wait for a person: the models and the hooks, which read JSON, say the same of every history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwork.clients.open_sessions import open_session
from deepwork.models.sessions import EventKind, Session
from deepwork.sessions.waiting import WaitKind, waiting_steps
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

AT = "2026-11-19T00:00:00.000000+00:00"

PASSED = ("verdict", {"passed": True})
FAILED = ("verdict", {"passed": False, "feedback": "Too short."})
CHANGED = ("verdict", {"passed": False, "feedback": "", "changed": ["a.md"]})
UNAVAILABLE = ("infrastructure", {"kind": "RunnerUnavailable", "error": "not logged in"})
TIMEOUT = ("infrastructure", {"kind": "RunnerTimeout", "error": "too slow"})
ATTEMPT = ("attempt", {})
ASKED = ("override_asked", {"reason": "It is a draft"})
BY_PERSON = ("override", {"by": "person", "reason": "fine"})
REOPENED = ("reopened", {"reason": "again"})
GIVEN_BACK = ("attempt_given_back", {})
HANDED_BACK = ("review_handed_back", {"feedback": "Have it reviewed."})
EVENTS = [
    *(PASSED, FAILED, CHANGED, UNAVAILABLE, TIMEOUT, ATTEMPT, ASKED),
    *(BY_PERSON, REOPENED, GIVEN_BACK, HANDED_BACK, ("step_begun", {}), ("override", {"reason": "agent"})),
]


@pytest.fixture
async def with_history(project, stored):
    """Make a session, as stored and as a model, with these events of its step `a` and these counts."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    async with project.agent() as agent:
        await agent.start()
    begun = stored()

    def make(events, attempts=3, failures=0):
        data = {**begun, "history": [*begun["history"], *_entries(events)]}
        counts = {"quality_attempts": attempts, "runner_failures": failures}
        data["step_progress"] = {"a": {**begun["step_progress"]["a"], **counts}}
        return data, Session.model_validate(data)

    return make


def _entries(events):
    return [{"at": AT, "kind": kind, "step_id": "a", "detail": detail} for kind, detail in events]


def kinds(session):
    return [waiting.kind for waiting in waiting_steps(session, max_attempts=3, max_failures=3)]


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([ATTEMPT, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, PASSED, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, FAILED, ATTEMPT], None),
        ([ATTEMPT, CHANGED], None),
        ([ATTEMPT, FAILED, BY_PERSON], None),
        ([ATTEMPT, FAILED, REOPENED], None),
        ([ATTEMPT, UNAVAILABLE, GIVEN_BACK], WaitKind.RUNNER),
        ([ATTEMPT, UNAVAILABLE, TIMEOUT, GIVEN_BACK], None),
        ([ATTEMPT, FAILED, ASKED], WaitKind.OVERRIDE),
        ([ASKED, ATTEMPT], None),
        ([ATTEMPT, ASKED, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, ASKED, PASSED], None),
        ([HANDED_BACK], None),
    ],
)
async def test_what_the_last_report_came_to_decides(with_history, events, kind):
    _, session = with_history(events)
    assert kinds(session) == ([kind] if kind else [])


async def test_too_few_attempts_wait_for_nobody(with_history):
    assert kinds(with_history([ATTEMPT, FAILED], attempts=2)[1]) == []
    assert kinds(with_history([ATTEMPT, TIMEOUT, GIVEN_BACK], failures=2)[1]) == []
    assert kinds(with_history([ATTEMPT, TIMEOUT, GIVEN_BACK], failures=3)[1]) == [WaitKind.NO_VERDICT]


async def test_hooks_say_the_same_of_every_history(with_history):
    @given(st.lists(st.sampled_from(EVENTS), max_size=8), st.integers(0, 4), st.integers(0, 4))
    def check(events, attempts, failures):
        data, session = with_history(events, attempts, failures)
        assert open_session(data, 3).waits_for_person == bool(kinds(session))

    check()


def test_the_kinds_of_events_are_those_that_hooks_know():
    assert {kind for kind, _ in EVENTS} <= set(EventKind)
