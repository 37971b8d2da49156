"""`deepwork gate show --sarif`, against the published schema of SARIF 2.1.0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from deepwork.api import same_verdict
from deepwork.errors import RunnerError
from deepwork.models.reviews import Finding
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

SCHEMA = json.loads((Path(__file__).parents[2] / "data/sarif-2.1.0.json").read_text())
DONE = {"a.md": "a.md"}


@pytest.fixture
def log(project, judge, served, deepwork):
    """Report work that is answered so, once each, with these overrides, and return the SARIF run of the session."""

    async def show(*answers, **override):
        criteria = {"Good": "Is it good?", "Short": "Is it short?"}
        project.write_job(steps=[step("a", reviews=[review(quality_criteria=criteria)]), step("b")])
        project.write("a.md", "one\ntwo\n")
        pending = [*answers]
        async with project.agent(served(judge(lambda request: pending.pop(0)(request)))) as agent:
            begin = await agent.start()
            for number in range(len(answers)):
                project.write("a.md", f"one\ntwo {number}\n")
                await agent.finish(DONE)
            if override:
                await agent.finish(DONE, **override)
        log = json.loads(await deepwork("gate", "show", begin["session_id"], "--sarif"))
        assert [*Draft202012Validator(SCHEMA).iter_errors(log)] == []
        [run] = log["runs"]
        return run

    return show


def passed(request):
    return same_verdict(request.criteria, passed=True)


def failed(request):
    findings = [Finding(file="a.md", line=2, end_line=2, criterion="Good", message="Thin")]
    return same_verdict(request.criteria, passed=False, feedback="Say more", findings=findings)


def away(_):
    return RunnerError("limited until 14:00")


def shown(run):
    return [
        (result["ruleId"], result.get("kind", "fail"), result["level"], result["message"]["text"])
        for result in run["results"]
    ]


def is_successful(run):
    return run["invocations"][0]["executionSuccessful"]


async def test_work_that_passed_is_a_pass_without_level(log):
    run = await log(passed)
    assert shown(run) == [("a/step/Good", "pass", "none", "passed"), ("a/step/Short", "pass", "none", "passed")]
    assert is_successful(run)


async def test_work_that_needs_more_is_an_error_at_its_finding_or_its_review(log):
    run = await log(failed)
    assert shown(run) == [
        ("a/step/Short", "fail", "error", "Say more"),
        ("a/step/Good", "fail", "error", "Thin"),
    ]
    place = run["results"][1]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a.md", "uriBaseId": "PROJECTROOT"}
    assert place["region"]["startLine"] == 2
    assert is_successful(run)


async def test_work_that_was_not_judged_is_open_and_the_run_failed(log):
    run = await log(away)
    assert {row[1:3] for row in shown(run)} == {("open", "none")}
    assert not is_successful(run)
    [notice] = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"] == "a: not judged: limited until 14:00"


async def test_only_the_last_report_counts(log):
    run = await log(away, failed, passed)
    assert {row[1] for row in shown(run)} == {"pass"}
    assert is_successful(run)


@pytest.mark.parametrize("answer", [failed, away])
async def test_an_override_suppresses_with_its_reason(log, answer):
    run = await log(answer, quality_review_override_reason="The user likes it")
    suppressions = [result["suppressions"] for result in run["results"]]
    assert suppressions == [[{"kind": "external", "justification": "The user likes it"}]] * 2
    assert is_successful(run)


async def test_an_override_before_any_review_is_told_too(log):
    run = await log(quality_review_override_reason="No time")
    assert shown(run) == [("a/step/Good", "open", "none", "not judged"), ("a/step/Short", "open", "none", "not judged")]
    assert all(result["suppressions"] for result in run["results"])
