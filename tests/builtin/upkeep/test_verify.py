"""`deepwork sessions verify`: which finished work was judged in its present form, and its judges."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from deepwork.api import NeedsWork, Passed, Usage
from deepwork.errors import RunnerError, RunnerLimited
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

LIMITED = "open, not judged: limited until 2030-01-02 15:04 UTC"


@pytest.fixture
def verified(deepwork):
    """Run the command, and give the exceptions by step and the whole report."""

    async def run(*arguments, code=0):
        report = json.loads(await deepwork("sessions", "verify", *arguments, "--json", code=code))
        gates = [gate for session in report["sessions"] for gate in session["gates"]]
        return {gate["step_id"]: gate["exceptions"] for gate in gates if gate["exceptions"]}, report

    return run


@pytest.fixture
def mixed(project):
    """A workflow with a file for each of its steps, and an input for the last one."""
    inputs = [{"file": "a.md", "from_step": "a"}]
    optional = {"c.md": output(required=False)}
    project.write_job(
        steps=[
            step("a"),
            step("b", reviews=[review(), review("b.md")]),
            step("c", outputs=optional, reviews=[review("c.md")]),
            step("d", reviews=[review()], inputs=inputs, dependencies=["a"]),
        ]
    )
    for name in "abd":
        project.write(f"{name}.md", f"{name}\n")
    return project


async def finish_all(agent, **last):
    begin = await agent.start()
    for name in "ab":
        await agent.finish({f"{name}.md": f"{name}.md"})
    await agent.finish({})
    assert (await agent.finish({"d.md": "d.md"}, **last))["status"] == "workflow_complete"
    return begin["session_id"]


async def test_work_that_is_as_it_was_judged_is_verified_with_its_judges(mixed, judge, served, verified, deepwork):
    usage = Usage(model="opus")
    async with mixed.agent(served(judge(lambda _: Passed("Fine", usage=usage)))) as agent:
        await finish_all(agent, notes="As asked")
    exceptions, report = await verified()
    assert (exceptions, report["verified"]) == ({}, True)
    [session] = report["sessions"]
    standings = {gate["step_id"]: (gate["standing"], gate["judges"]) for gate in session["gates"]}
    assert standings == {
        "a": ("without reviews", []),
        "b": ("passed", ["judge (opus)"]),
        "c": ("skipped: there was nothing to judge", []),
        "d": ("passed", ["judge (opus)"]),
    }
    printed = await deepwork("sessions", "verify", session["session_id"][:8])
    assert "ok         b: passed by judge (opus)" in printed


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda project: project.write("b.md", "other"), {"b": ["b.md: has changed since it was judged"]}),
        (lambda project: (project.root / "b.md").unlink(), {"b": ["b.md: cannot be compared: not found"]}),
        (
            lambda project: project.write("a.md", "other"),
            {"d": ["step: its files, inputs, criteria or notes are not those that judge judged"]},
        ),
    ],
    ids=["edited", "removed", "an input"],
)
async def test_what_has_changed_is_named(mixed, judge, served, verified, change, expected):
    async with mixed.agent(served(judge(lambda _: Passed()))) as agent:
        await finish_all(agent)
    change(mixed)
    assert (await verified(code=1))[0] == expected


async def test_overrides_self_reviews_and_gates_that_were_off_are_exceptions(mixed, judge, served, verified):
    async with mixed.agent(served(judge(lambda _: NeedsWork("No")))) as agent:
        begin = await agent.start()
        await agent.finish({"a.md": "a.md"})
        await agent.finish({"b.md": "b.md"}, quality_review_override_reason="In a\nhurry")
        await agent.finish({})
    named = {"session_id": begin["session_id"]}
    async with mixed.agent() as agent:
        await agent.finish({"d.md": "d.md"}, **named)
        await agent.finish({"d.md": "d.md"}, **named, quality_review_override_reason="A subagent passed it")
    assert (await verified(begin["session_id"], code=1))[0] == {
        "b": ["overridden by the agent: In a hurry"],
        "d": ["self-judged: A subagent passed it"],
    }
    async with mixed.agent(enable_quality_gate=False) as agent:
        session_id = await finish_all(agent)
    off = ["without a review: the quality gate was off"]
    assert (await verified(session_id, code=1))[0] == {"b": off, "c": off, "d": off}


async def test_members_of_a_group_that_nobody_reported_are_exceptions(project, verified):
    steps = [step("p"), step("m"), step("free", outputs={"x": output(required=False)})]
    project.write_job(steps=steps, workflows={"main": [["p", "m", "free"]]})
    project.write("p.md")
    async with project.agent() as agent:
        await agent.start()
        assert (await agent.finish({"p.md": "p.md"}))["status"] == "workflow_complete"
    assert (await verified(code=1))[0] == {"m": ["never reported"]}


async def test_more_files_than_the_history_names_are_verified_by_one_digest(project, judge, served, verified):
    project.write_job(steps=[step("a", outputs={"parts": output("files")}, reviews=[review()])])
    files = [project.write(f"part{number}.md", f"{number}\n").name for number in range(60)]
    async with project.agent(served(judge(lambda _: Passed()))) as agent:
        await agent.start()
        await agent.finish({"parts": files})
    assert (await verified())[0] == {}
    project.write("part59.md", "other\n")
    [[text]] = (await verified(code=1))[0].values()
    assert text.startswith("step: its files, inputs")


async def test_a_session_that_is_not_finished_is_an_exception_if_it_is_asked_for(mixed, verified):
    async with mixed.agent() as agent:
        begin = await agent.start()
    assert (await verified())[1] == {"verified": True, "sessions": []}
    exceptions, _ = await verified(begin["session_id"], code=1)
    assert exceptions["*"] == ["the session is not finished, but active"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NeedsWork("No"), "open, needs work"),
        (RunnerError("away"), "open, not judged"),
        (RunnerLimited("enough", until=datetime(2030, 1, 2, 15, 4, tzinfo=UTC)), LIMITED),
    ],
)
async def test_of_an_open_step_it_says_how_its_last_review_has_ended(mixed, judge, served, verified, answer, words):
    async with mixed.agent(served(judge(lambda _: answer))) as agent:
        begin = await agent.start()
        await agent.finish({"a.md": "a.md"})
        await agent.finish({"b.md": "b.md"})
    assert (await verified(begin["session_id"], code=1))[0]["b"] == [words]


async def test_a_judge_that_was_never_tried_on_broken_work_is_told_from_one_that_was(mixed, judge, served, deepwork):
    async with mixed.agent(served(judge(lambda _: Passed()))) as agent:
        session_id = await finish_all(agent)
    words = "by its word: it was not tried on broken work"
    assert f"judge: {words}" in await deepwork("sessions", "verify", session_id)
    assert words in await deepwork("gate", "show", session_id)
