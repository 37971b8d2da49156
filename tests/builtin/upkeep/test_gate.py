"""`deepwork gate` on the terminal."""

from __future__ import annotations

import json
import os
import sys

import pytest

from deepwork.api import CriterionResult, NeedsWork, Passed, Usage
from deepwork.errors import RunnerUnavailable
from deepwork.paths.user_folders import user_config_file
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}

JUDGE = """\
import json, sys
asked = json.load(sys.stdin)
good = "TODO" not in asked["payload"]
results = [{"criterion": name, "passed": good, "feedback": "seen"} for name in asked["criteria"]]
print(json.dumps({"passed": good, "feedback": "" if good else "Do it", "criteria_results": results}))
"""


@pytest.fixture
def reviewed_session(reviewed, judge, served):
    """Make a session with a missing verdict, a failure and an override, and give its id."""

    async def make():
        result = CriterionResult(criterion="Good", passed=False, feedback="It is thin")
        answers = [RunnerUnavailable("away"), NeedsWork("Say more", (result,), Usage(model="opus", cost_usd=0.5))]
        async with reviewed.agent(served(judge(lambda _: answers.pop(0)))) as agent:
            begin = await agent.start()
            await agent.finish(DONE)
            await agent.finish(DONE)
            await agent.finish(DONE, quality_review_override_reason="The user likes it")
        return begin["session_id"]

    return make


async def test_show_tells_what_was_judged_and_why(reviewed_session, deepwork):
    lines = (await deepwork("gate", "show", (await reviewed_session())[:8])).splitlines()
    assert lines[0].startswith("a, attempt 1  20")
    assert lines[1].startswith("not judged step  by judge (")
    assert lines[2].strip() == "away"
    assert lines[3] == "a, the attempt does not count: no_verdict"
    assert "needs work step  by judge (" in lines[5]
    assert "$0.5000, opus)" in lines[5]
    assert [line.strip() for line in lines[6:]] == [
        "Say more",
        "✗ Good: It is thin",
        "a, overridden: The user likes it",
    ]


async def test_show_can_be_asked_for_one_step_and_as_json(reviewed_session, deepwork):
    session_id = await reviewed_session()
    entries = json.loads(await deepwork("gate", "show", session_id, "a", "--json"))
    kinds = ["attempt", "infrastructure", "attempt_given_back", "attempt", "verdict", "override"]
    assert [entry["kind"] for entry in entries] == kinds
    assert "Nothing was reviewed." in await deepwork("gate", "show", session_id, "b")


async def test_show_names_the_steps_when_it_is_asked_for_another(reviewed_session, deepwork):
    text = await deepwork("gate", "show", await reviewed_session(), "c", code=1)
    assert "has not begun a step 'c'; it has begun: a, b" in text


@pytest.fixture
def tried(project):
    """A project whose gate asks a program, by the user's own configuration."""
    outputs = {"text": output(), "parts": output("files", required=False)}
    reviews = [review("text"), review("parts")]
    project.write_job(steps=[step("a", outputs=outputs, reviews=reviews), step("b", reviews=[review()])])
    project.write("check.py", JUDGE)
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    command = {"check": {"run": [sys.executable, "-IS", "check.py"]}}
    file.write_text(json.dumps({"quality_gate": {"runner": "check", "commands": command}}))
    project.write("good.md", "Done\n")
    project.write("bad.md", "TODO\n")
    project.trust()
    return project


async def test_try_reviews_files_without_a_session(tried, deepwork):
    text = await deepwork("gate", "try", "demo", "a", "--file", "text=good.md")
    assert text.splitlines()[0].startswith("passed     good.md  by check (")
    assert "✓ Good: seen" in text
    assert "skipped    parts: no file" in text
    assert list(tried.state.glob("session_*")) == []


async def test_try_exits_with_1_when_a_review_fails(tried, deepwork):
    files = ("--file", "text=good.md", "--file", "parts=good.md", "--file", "parts=bad.md")
    text = await deepwork("gate", "try", "demo", "a", *files, code=1)
    assert "needs work bad.md  by check" in text
    assert "Do it" in text


async def test_try_takes_a_path_alone_where_a_step_has_one_output(tried, deepwork):
    report = json.loads(await deepwork("gate", "try", "demo", "b", "--file", "good.md", "--json"))
    assert report["passed"] is True
    assert [review["run_each"] for review in report["reviews"]] == ["step"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("demo", "a", "--file", "good.md"), "'good.md' names no output; give OUTPUT=PATH with one of: text, parts"),
        (
            ("demo", "a", "--file", "text=good.md", "--file", "text=bad.md"),
            "output 'text' is one file, but 2 were given",
        ),
        (("demo", "a", "--file", "text=none.md"), "file not found at 'none.md'"),
        (("demo", "z"), "job 'demo' has no step 'z'; it has: a, b"),
        (("nojob", "a"), "Job not found"),
        (("demo", "b", "--file", "good.md", "--runner", "nobody"), "no review runner 'nobody'"),
    ],
)
async def test_try_says_what_is_wrong_with_what_it_was_given(tried, deepwork, arguments, why):
    assert why in await deepwork("gate", "try", *arguments, code=1)


async def test_try_with_self_review_writes_the_file_and_says_where(tried, deepwork):
    text = await deepwork("gate", "try", "demo", "b", "--file", "good.md", "--runner", "self", code=1)
    assert "not judged  step  by self, which hands reviews back to the agent:" in text
    assert "--runner" in text
    assert ".deepwork/tmp/quality_review_try_b.md" in text
    assert (tried.state / "quality_review_try_b.md").exists()


async def test_passed_work_shows_its_cost_only_if_it_is_known(reviewed, judge, served, deepwork):
    async with reviewed.agent(served(judge(lambda _: Passed("Fine")))) as agent:
        begin = await agent.start()
        await agent.finish(DONE)
    text = await deepwork("gate", "show", begin["session_id"])
    assert "$" not in text
    assert "Fine" in text
