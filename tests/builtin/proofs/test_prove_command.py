"""`deepwork gate prove`: a table and JSON of what the gates of a step refuse."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from deepwork.paths.user_folders import user_config_file
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

HONEST = "grep -qs 'The work of 12 people' a.md"


@pytest.fixture
def prove_with(deepwork):
    """Let this shell script be the gate, and run the command; it has to end with this code."""

    async def run(script, *arguments, code, **more):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        command = {"run": ["sh", "-c", script], "verdict": "exit_code", **more}
        file.write_text(json.dumps({"quality_gate": {"commands": {"tests": command}, "runner": "tests"}}))
        return await deepwork("gate", "prove", "demo", "a", *arguments, code=code)

    return run


@pytest.fixture
def prove(reviewed, prove_with):
    """Do that with the work of a project."""
    reviewed.write("a.md", "The work of 12 people\n")
    return prove_with


@pytest.mark.parametrize(
    ("script", "more", "code", "result", "grade"),
    [
        (HONEST, {}, 0, "proved", "content"),
        ("test -e a.md", {}, 0, "proved", "presence"),
        ("true", {}, 1, "cannot_fail", None),
        (f"{HONEST} || kill -SEGV $$", {}, 4, "not_provable", None),
        (HONEST, {"repeatable": False}, 4, "not_provable", None),
        ("test ! -e a.md || test -s a.md", {}, 0, "proved", "presence"),
        ("false", {}, 5, None, None),
    ],
)
async def test_the_exit_code_and_the_json_say_the_result(prove, script, more, code, result, grade):
    facts = json.loads(await prove(script, "--file", "a.md", "--json", code=code, **more))
    assert (facts["result"], facts["grade"]) == (result, grade)
    for attempt in facts["counterfactuals"]:
        assert set(attempt) == {"kind", "output", "verdict", "reason", "seconds"}


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        (HONEST, ["missing", "mutant"]),
        ("test -e a.md", ["missing", "mutant", "mutant"]),
        ("test ! -e a.md || test -s a.md", ["missing", "empty", "mutant"]),
        ("true", ["missing", "empty", "mutant"]),
    ],
)
async def test_missing_then_empty_then_a_mutant_until_what_can_be_read_is_refused(prove, script, kinds):
    tried = json.loads(await prove(script, "--file", "a.md", "--json", code=script == "true"))["counterfactuals"]
    tried = [attempt for attempt in tried if attempt["kind"] != "the work as it is"]
    assert [attempt["kind"].partition(":")[0] for attempt in tried] == kinds


async def test_of_a_file_that_git_knows_a_line_of_the_change_is_removed(reviewed, prove, deepwork):
    def git(*arguments):
        subprocess.run(["git", "-C", str(reviewed.root), *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("add", "a.md")
    git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "Begin")
    reviewed.write("a.md", "The work of 12 people\nis done\n")
    facts = json.loads(await prove("true", "--file", "a.md", "--json", "--mutants", "40", code=1))
    lines = {attempt["kind"] for attempt in facts["counterfactuals"] if "removed" in attempt["kind"]}
    assert lines == {"mutant: a line of the change removed in line 2 of a.md"}


async def test_people_read_a_table(prove):
    lines = (await prove("true", "--file", "a.md", code=1)).splitlines()
    assert lines[0] == "tests (step): cannot fail"
    assert [line.split()[0] for line in lines[2:]] == ["green"] * 3
    assert [line.split()[3].rstrip(":") for line in lines[2:]] == ["missing", "empty", "mutant"]


async def test_mutants_are_counted_with_an_exact_interval(prove):
    score = json.loads(await prove(HONEST, "--file", "a.md", "--mutants", "12", "--json", code=0))["score"]
    assert 0 < score["of"] <= 12
    assert 0 <= score["interval"][0] < score["killed"] / score["of"] <= score["interval"][1] <= 1


async def test_without_files_it_is_the_work_of_the_newest_completed_session(reviewed, prove):
    reply = await prove(HONEST, code=5)
    assert "no completed session of job 'demo' has outputs of step 'a'" in reply
    async with reviewed.agent() as agent:
        await agent.start()
        await agent.finish({"a.md": "a.md"}, quality_review_override_reason="Enough")
        await agent.finish({"b.md": "b.md"})
    assert "proved by content" in await prove(HONEST, code=0)


async def test_without_work_it_is_the_same_code_as_for_work_that_is_refused(prove):
    assert "gone.md" in await prove(HONEST, "--file", "gone.md", code=5)


async def test_without_files_a_gate_sees_the_inputs_of_that_session_too(project, prove_with):
    """A gate in the copy has only what is judged, and the files of earlier steps on which the step builds."""
    inputs = [{"file": "facts", "from_step": "first"}]
    first = step("first", outputs={"facts": output()})
    project.write_job(steps=[first, step("a", inputs=inputs, dependencies=["first"], reviews=[review()])])
    project.write("facts.md", "12 people\n")
    project.write("a.md", "12 people\n")
    script = "test -e facts.md && test -s a.md && diff facts.md a.md"
    await prove_with(script, "--file", "a.md", code=5)
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({"facts": "facts.md"})
        await agent.finish({"a.md": "a.md"}, quality_review_override_reason="Enough")
    assert "proved by content" in await prove_with(script, code=0)


async def test_a_wrong_option_is_a_usage_error(prove):
    await prove(HONEST, "--mutants", "many", code=2)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nojob", "a"), "Job not found"),
        (("demo", "z"), "job 'demo' has no step 'z'"),
        (("demo", "a", "--file", "a.md", "--file", "b.md"), "output 'a.md' is one file, but 2 were given"),
    ],
)
async def test_so_are_a_job_a_step_and_files_that_do_not_fit(reviewed, deepwork, arguments, why):
    assert why in await deepwork("gate", "prove", *arguments, code=2)
