"""A verdict holds for the judged contents: not for others, and not again for money."""

from __future__ import annotations

import os

import pytest

from deepwork.api import NeedsWork, Passed
from deepwork.errors import RunnerUnavailable
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


async def test_what_has_passed_is_not_judged_again_and_that_is_said(project, many, judge, served, history):
    files = many(3)
    runner = judge(lambda request: NeedsWork("mend") if request.files == ("part1.md",) else Passed())
    async with project.agent(served(runner)) as agent:
        await agent.start()
        await agent.finish({"parts": files})
        runner.requests.clear()
        project.write("part1.md", "Better\n")
        runner.answer = lambda _: Passed()
        reply = await agent.finish({"parts": files})
    assert reply["status"] == "workflow_complete"
    assert [request.files for request in runner.requests] == [("part1.md",)]
    assert "Passed before and unchanged, so not reviewed again: part0.md, part2.md." in reply.get("notices", [])
    assert [(verdict["file"], verdict["reused"]) for verdict in history("verdict")][3:] == [
        ("part0.md", True),
        ("part1.md", False),
        ("part2.md", True),
    ]


async def test_what_has_failed_stays_failed_until_a_file_changes_whatever_is_noted_about_it(
    reviewed, judge, served, history
):
    """A reviewer that errs once in ten draws would otherwise pass anything at the tenth call."""
    answers = [NeedsWork("mend"), Passed()]
    runner = judge(lambda _: answers.pop(0))
    async with reviewed.agent(served(runner, quality_gate_max_attempts=3)) as agent:
        await agent.start()
        await agent.finish(DONE)
        reply = await agent.finish(DONE, notes="It is good. Please pass it.")
        assert (reply["status"], reply["feedback"]) == ("needs_work", "mend")
        assert "Failed before and unchanged, so not reviewed again: step." in reply["notices"]
        assert "after 3 attempts: mend" in await agent.refused("finished_step", outputs=DONE)
        assert len(runner.requests) == 1
        reviewed.write("a.md", "Better\n")
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert [verdict["reused"] for verdict in history("verdict")] == [False, True, True, False]


async def test_going_back_to_work_that_failed_does_not_draw_again(reviewed, judge, served):
    answers = [NeedsWork("one"), NeedsWork("two"), Passed()]
    async with reviewed.agent(served(judge(lambda _: answers.pop(0)), quality_gate_max_attempts=9)) as agent:
        await agent.start()
        await agent.finish(DONE)
        reviewed.write("a.md", "Other\n")
        assert (await agent.finish(DONE))["feedback"] == "two"
        reviewed.write("a.md", "The work\n")
        assert (await agent.finish(DONE))["feedback"] == "one"


@pytest.fixture
def pair(project):
    """A step with two reviews: the first passes and the second has no verdict, so that it is called again."""
    first = step("first", outputs={"given": output()})
    inputs = [{"file": "given", "from_step": "first"}]
    outputs = {"x": output(), "y": output()}
    second = step("second", outputs=outputs, reviews=[review("x"), review("y")], inputs=inputs, dependencies=["first"])
    project.write_job(steps=[first, second])
    for name in ("given.md", "x.md", "y.md"):
        project.write(name)
    return project


@pytest.mark.parametrize(
    ("change", "is_judged_again"),
    [
        (lambda project: project.write("x.md", "edited"), True),
        (lambda project: project.write("given.md", "edited"), True),
        (lambda project: project.write("y.md", "edited"), False),
        (lambda project: None, False),
    ],
    ids=["its file", "an input", "another file", "nothing"],
)
async def test_a_passed_review_is_judged_again_only_if_its_files_or_inputs_changed(
    pair, judge, served, change, is_judged_again
):
    runner = judge(lambda request: Passed() if request.files == ("x.md",) else RunnerUnavailable("away"))
    async with pair.agent(served(runner)) as agent:
        await agent.start()
        await agent.finish({"given": "given.md"})
        await agent.finish({"x": "x.md", "y": "y.md"})
        change(pair)
        runner.requests.clear()
        await agent.finish({"x": "x.md", "y": "y.md"})
    assert (("x.md",) in [request.files for request in runner.requests]) == is_judged_again


async def test_other_notes_are_another_review(pair, judge, served):
    runner = judge(lambda request: Passed() if request.files == ("x.md",) else RunnerUnavailable("away"))
    async with pair.agent(served(runner)) as agent:
        await agent.start()
        await agent.finish({"given": "given.md"})
        await agent.finish({"x": "x.md", "y": "y.md"}, notes="one")
        await agent.finish({"x": "x.md", "y": "y.md"}, notes="two")
    assert [request.notes for request in runner.requests if request.files == ("x.md",)] == ["one", "two"]


async def test_a_file_that_changes_during_its_review_needs_work_and_that_is_said(reviewed, judge, served, history):
    def edit(_):
        reviewed.write("a.md", "Not what was judged\n")
        return Passed()

    runner = judge(edit)
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
        assert reply["status"] == "needs_work"
        assert "Changed while they were reviewed, so that no verdict holds" in reply["feedback"]
        assert ": a.md." in reply["feedback"]
        assert history("verdict")[0]["changed"] == ["a.md"]
        runner.answer = lambda _: Passed()
        reviewed.write("a.md", "The work\n")  # as it was: the reviewer may have seen either
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert len(runner.requests) == 2


async def test_a_file_that_is_swapped_and_put_back_during_its_review_is_noticed(reviewed, judge, served):
    def swap(_):
        real, beside = reviewed.root / "a.md", reviewed.root / "other.md"
        content = real.read_bytes()
        os.rename(real, beside)
        real.write_text("good work\n")
        real.unlink()
        real.write_bytes(content)
        return Passed()

    async with reviewed.agent(served(judge(swap))) as agent:
        await agent.start()
        assert "Changed while they were reviewed" in (await agent.finish(DONE))["feedback"]


async def test_a_file_that_is_removed_during_its_review_is_noticed(reviewed, judge, served):
    def remove(_):
        (reviewed.root / "a.md").unlink()
        return Passed()

    async with reviewed.agent(served(judge(remove))) as agent:
        await agent.start()
        assert "Changed while they were reviewed" in (await agent.finish(DONE))["feedback"]


async def test_the_next_step_begins_as_it_was_read_before_the_review(reviewed, judge, served):
    instructions = reviewed.jobs / "demo" / "steps" / "b.md"
    text = instructions.read_text()

    def lose(_):
        instructions.unlink()
        return Passed()

    async with reviewed.agent(served(judge(lose))) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert (reply["status"], reply["begin_step"]["step_instructions"]) == ("next_step", text)
