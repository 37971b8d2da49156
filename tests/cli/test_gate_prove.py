"""`deepwork gate prove`: a table and JSON of what the gates of a step refuse."""

from __future__ import annotations

import json
import os

import pytest

from deepwork.paths.user_folders import user_config_file

pytestmark = pytest.mark.anyio

HONEST = "grep -qs 'The work of 12 people' a.md"


@pytest.fixture
def prove(reviewed, deepwork):
    """Let this shell script be the gate, and run the command; it has to end with this code."""

    async def run(script, *arguments, code, **more):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        command = {"run": ["sh", "-c", script], "verdict": "exit_code", **more}
        file.write_text(json.dumps({"quality_gate": {"commands": {"tests": command}, "runner": "tests"}}))
        reviewed.write("a.md", "The work of 12 people\n")
        return await deepwork("gate", "prove", "demo", "a", *arguments, code=code)

    return run


@pytest.mark.parametrize(
    ("script", "more", "code", "result", "grade"),
    [
        (HONEST, {}, 0, "proved", "content"),
        ("test -e a.md", {}, 0, "proved", "presence"),
        ("true", {}, 1, "cannot_fail", None),
        (f"{HONEST} || kill -SEGV $$", {}, 4, "not_provable", None),
        (HONEST, {"repeatable": False}, 4, "not_provable", None),
        ("false", {}, 5, None, None),
    ],
)
async def test_the_exit_code_and_the_json_say_the_result(prove, script, more, code, result, grade):
    facts = json.loads(await prove(script, "--file", "a.md", "--json", code=code, **more))
    assert (facts["result"], facts["grade"]) == (result, grade)
    for one in facts["counterfactuals"]:
        assert set(one) == {"kind", "output", "verdict", "reason", "seconds"}


async def test_people_read_a_table(prove):
    lines = (await prove("true", "--file", "a.md", code=1)).splitlines()
    assert lines[0] == "tests (step): cannot fail"
    assert [line.split()[0] for line in lines[2:]] == ["green"] * 3
    assert lines[-1].endswith("missing")


async def test_mutants_are_counted_with_an_exact_interval(prove):
    score = json.loads(await prove(HONEST, "--file", "a.md", "--mutants", "12", "--json", code=0))["score"]
    assert 0 < score["of"] <= 12
    assert 0 <= score["interval"][0] < score["killed"] / score["of"] <= score["interval"][1] <= 1


async def test_without_files_it_is_the_work_of_the_newest_completed_session(reviewed, prove):
    reply = await prove(HONEST, code=1)
    assert "no completed session of job 'demo' has outputs of step 'a'" in reply
    async with reviewed.agent() as agent:
        await agent.start()
        await agent.finish({"a.md": "a.md"}, quality_review_override_reason="Enough")
        await agent.finish({"b.md": "b.md"})
    assert "proved by content" in await prove(HONEST, code=0)


async def test_a_wrong_option_is_a_usage_error(prove):
    await prove(HONEST, "--mutants", "many", code=2)
