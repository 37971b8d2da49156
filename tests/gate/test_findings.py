"""Findings: what a reviewer has found at a line, on its way to the agent, the history and SARIF."""

from __future__ import annotations

import pytest

from deepwork.api import same_verdict
from deepwork.gate.findings import MAX_FINDINGS
from deepwork.models.reviews import Finding

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


def found(**changes):
    return Finding(**{"file": "a.md", "line": 1, "criterion": "Good", "message": "Too thin", **changes})


def refused(*findings):
    return lambda request: same_verdict(request.criteria, passed=False, feedback="Look", findings=findings)


@pytest.fixture
def report(reviewed, judge, served):
    """Have the work `a.md` judged with these findings, and return those of the agent's reply."""

    async def report(*findings, content="one\ntwo\nthree\n"):
        reviewed.write("a.md", content)
        async with reviewed.agent(served(judge(refused(*findings)))) as agent:
            await agent.start()
            [failed] = (await agent.finish(DONE))["failed_reviews"]
        return failed.get("findings", [])

    return report


async def test_findings_reach_the_agent_and_the_history(report, history):
    findings = [found(line=2, end_line=3), found(level="note", message="Nice")]
    expected = [
        {"file": "a.md", "line": 2, "end_line": 3, "criterion": "Good", "message": "Too thin", "level": "error"},
        {"file": "a.md", "line": 1, "criterion": "Good", "message": "Nice", "level": "note"},
    ]
    assert await report(*findings) == expected
    [verdict] = history("verdict")
    assert [{key: value for key, value in finding.items() if value} for finding in verdict["findings"]] == expected


@pytest.mark.parametrize(
    "values",
    [
        {"file": "b.md"},
        {"file": "../a.md"},
        {"line": 0},
        {"line": 4},
        {"line": 2, "end_line": 1},
        {"line": 2, "end_line": 9},
        {"criterion": "Unknown"},
    ],
)
async def test_a_finding_that_points_to_nothing_is_dropped_and_the_verdict_stands(report, history, values):
    assert await report(found(**values), found()) == [found().model_dump()]
    assert [verdict["passed"] for verdict in history("verdict")] == [False]


async def test_at_most_200_findings_are_kept(report):
    assert len(await report(*[found()] * 300)) == MAX_FINDINGS == 200


async def test_a_finding_may_name_its_file_absolutely(reviewed, judge, served):
    def answer(request):
        files = [str(request.files_root / "a.md"), str(request.project_root / "a.md"), "./a.md"]
        return refused(*[found(file=file) for file in files])(request)

    async with reviewed.agent(served(judge(answer))) as agent:
        await agent.start()
        [failed] = (await agent.finish(DONE))["failed_reviews"]
    assert [finding["file"] for finding in failed["findings"]] == ["a.md"] * 3


async def test_invisible_characters_of_a_message_are_shown(report):
    [finding] = await report(found(message="a\u202eb\x1b[2J"))
    assert "\u202e" not in finding["message"]
    assert "\x1b" not in finding["message"]


async def test_a_passed_review_may_have_findings_too(reviewed, judge, served, history):
    passed = lambda request: same_verdict(request.criteria, passed=True, findings=[found(level="warning")])  # noqa: E731
    async with reviewed.agent(served(judge(passed))) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert [finding["level"] for finding in history("verdict")[0]["findings"]] == ["warning"]


async def test_a_failure_that_is_answered_from_the_history_has_its_findings_again(reviewed, judge, served):
    runner = judge(refused(found()))
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        first, second = [(await agent.finish(DONE))["failed_reviews"] for _ in range(2)]
    assert first == second
    assert first[0]["findings"]
    assert len(runner.requests) == 1
