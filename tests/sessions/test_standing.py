"""Where a session stands, read from its history: which steps wait for a person, and under which limits."""

from __future__ import annotations

import pytest

from deepwork.models.sessions import Session
from deepwork.models.standing import WaitKind
from deepwork.sessions.standing import waiting_steps
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
NOTE = ("note", {"text": "Shorter, please", "by": "person", "at": AT})
# What has another shape than its kind has it counts as nothing.
NO_VERDICT_AT_ALL = ("verdict", {"passed": "no"})


@pytest.fixture
async def with_history(project, stored):
    """Make a session with these events of its member `b`, and these counts; the primary `a` is still worked on."""
    project.write_job(steps=[step("a"), step("b", reviews=[review()])], workflows={"main": [["a", "b"]]})
    async with project.agent() as agent:
        await agent.start()
    started = stored()

    def make(events, attempts=3, failures=0):
        entries = [{"at": AT, "kind": kind, "step_id": "b", "detail": detail} for kind, detail in events]
        data = {**started, "history": [*started["history"], *entries]}
        counts = {"quality_attempts": attempts, "runner_failures": failures}
        progress = started["step_progress"]
        data["step_progress"] = {**progress, "b": {**progress["b"], **counts}}
        return Session.model_validate(data)

    return make


def kinds(session):
    return [waiting.kind for waiting in waiting_steps(session)]


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([ATTEMPT, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, PASSED, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, FAILED, ATTEMPT], None),
        ([ATTEMPT, FAILED, NOTE], WaitKind.FAILED_GATE),
        ([ATTEMPT, FAILED, ASKED, NOTE], WaitKind.OVERRIDE),
        ([ATTEMPT, CHANGED], None),
        ([ATTEMPT, FAILED, BY_PERSON], None),
        ([ATTEMPT, FAILED, REOPENED], None),
        ([ATTEMPT, UNAVAILABLE, GIVEN_BACK], WaitKind.RUNNER),
        ([ATTEMPT, UNAVAILABLE, TIMEOUT, GIVEN_BACK], None),
        ([ATTEMPT, FAILED, ASKED], WaitKind.OVERRIDE),
        ([ASKED, ATTEMPT], None),
        ([ATTEMPT, ASKED, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, ASKED, PASSED], None),
        ([ATTEMPT, NO_VERDICT_AT_ALL], None),
        ([HANDED_BACK], None),
    ],
)
async def test_what_the_last_report_of_any_open_step_came_to_decides(with_history, events, kind):
    assert kinds(with_history(events)) == ([kind] if kind else [])


async def test_too_few_attempts_wait_for_nobody(with_history):
    assert kinds(with_history([ATTEMPT, FAILED], attempts=2)) == []
    assert kinds(with_history([ATTEMPT, TIMEOUT, GIVEN_BACK], failures=2)) == []
    assert kinds(with_history([ATTEMPT, TIMEOUT, GIVEN_BACK], failures=3)) == [WaitKind.NO_VERDICT]


@pytest.mark.parametrize(("limit", "kind"), [(2, WaitKind.FAILED_GATE), (5, None)])
async def test_the_limits_of_the_last_attempt_count(with_history, limit, kind):
    earlier = ("attempt", {"number": 1, "max_attempts": 1, "max_failures": 1})
    last = ("attempt", {"number": 2, "max_attempts": limit, "max_failures": limit})
    expected = [kind] if kind else []
    assert kinds(with_history([earlier, FAILED, last, FAILED], attempts=2)) == expected
    expected = [WaitKind.NO_VERDICT] if kind else []
    assert kinds(with_history([earlier, TIMEOUT, last, TIMEOUT], failures=2)) == expected


async def test_a_step_waits_whose_agent_was_told_to_ask_its_user_though_no_attempt_was_counted(with_history):
    event = ("infrastructure", {"kind": "RunnerTimeout", "error": "too slow", "asks_user": True})
    assert kinds(with_history([event], attempts=0)) == [WaitKind.NO_VERDICT]


PERSON_ASKED = ("person_asked", {"reference": "sessions:1.b", "text": "Wait.", "work": "w", "reviews": []})
DECIDED = ("verdict", {"passed": False, "feedback": "No", "runner": "person", "by": "person"})


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([ATTEMPT, PERSON_ASKED], WaitKind.PERSON),
        ([ATTEMPT, PASSED, PERSON_ASKED, GIVEN_BACK], WaitKind.PERSON),
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, NOTE], WaitKind.PERSON),
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, ASKED], WaitKind.PERSON),
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, DECIDED], None),  # the agent can go on
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, ATTEMPT], None),  # something else is reviewed
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, DECIDED, ATTEMPT, FAILED], WaitKind.FAILED_GATE),
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, BY_PERSON], None),
        ([ATTEMPT, PERSON_ASKED, GIVEN_BACK, REOPENED], None),
    ],
)
async def test_a_step_waits_for_the_review_of_a_person_until_they_decide_or_it_is_reported_again(
    with_history, events, kind
):
    assert kinds(with_history(events)) == ([kind] if kind else [])
