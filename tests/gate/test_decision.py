"""What a verdict does to a step: it goes on, needs work, or is stuck."""

from __future__ import annotations

import math

import pytest

from deepwork.api import CriterionResult, HandedBack, NeedsWork, Passed, Usage
from deepwork.errors import BadVerdict, RunnerUnavailable
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


async def test_a_step_whose_reviews_pass_is_completed(reviewed, judge, served):
    async with reviewed.agent(served(judge(lambda _: Passed()))) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"


async def test_a_failed_review_is_told_with_its_criteria(reviewed, judge, served):
    result = CriterionResult(criterion="Good", passed=False, feedback="It is thin")
    runner = judge(lambda _: NeedsWork("Say more", (result,)))
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert (reply["status"], reply["feedback"]) == ("needs_work", "Say more")
    assert reply["failed_reviews"] == [
        {
            "review_run_each": "step",
            "target_file": None,
            "passed": False,
            "feedback": "Say more",
            "criteria_results": [{"criterion": "Good", "passed": False, "feedback": "It is thin"}],
        }
    ]
    assert "Attempt 1 of 3." in reply.get("notices", [])


async def test_feedback_of_all_failed_reviews_is_joined_in_the_order_of_the_reviews(project, judge, served):
    reviews = [review("x.md"), review(), review("y.md")]
    project.write_job(steps=[step("a", outputs={"x.md": output(), "y.md": output()}, reviews=reviews)])
    project.write("x.md")
    project.write("y.md")
    runner = judge(lambda request: NeedsWork(f"no {request.tasks[0].run_each}"))
    async with project.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish({"x.md": "x.md", "y.md": "y.md"})
    assert reply["feedback"] == "no x.md; no step; no y.md"
    assert [failed["target_file"] for failed in reply["failed_reviews"]] == ["x.md", None, "y.md"]


async def test_at_the_maximum_the_error_has_all_feedback(reviewed, judge, served):
    runner = judge(lambda _: NeedsWork("Say more"))
    async with reviewed.agent(served(runner, quality_gate_max_attempts=2)) as agent:
        await agent.start()
        await agent.finish(DONE)
        text = await agent.refused("finished_step", outputs=DONE)
    assert text.startswith("Quality gate failed after 2 attempts: Say more")
    assert "quality_review_override_reason" in text


async def test_after_the_maximum_work_is_still_judged_and_a_pass_moves_on(reviewed, judge, served, stored):
    answers = [NeedsWork("1"), NeedsWork("2"), Passed()]
    runner = judge(lambda _: answers.pop(0))
    async with reviewed.agent(served(runner, quality_gate_max_attempts=1)) as agent:
        await agent.start()
        assert "after 1 attempts: 1" in await agent.refused("finished_step", outputs=DONE)
        reviewed.write("a.md", "Better\n")
        assert "after 2 attempts: 2" in await agent.refused("finished_step", outputs=DONE)
        reviewed.write("a.md", "Good\n")
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert stored()["step_progress"]["a"]["quality_attempts"] == 3


async def test_a_review_of_a_list_is_held_once_for_each_file_in_its_order(project, many, judge, served):
    files = many(7)
    runner = judge(lambda request: NeedsWork(f"mend {request.files[0]}"))
    async with project.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish({"parts": files})
    assert [failed["target_file"] for failed in reply["failed_reviews"]] == files
    assert reply["feedback"] == "; ".join(f"mend {file}" for file in files)


async def test_no_verdict_gives_the_attempt_back_and_is_no_judgement_of_the_work(reviewed, judge, served, stored):
    runner = judge(lambda _: RunnerUnavailable("not logged in", hint="Run `acme login`."))
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert reply["status"] == "needs_work"
    assert "failed_reviews" not in reply
    assert "No verdict of 'judge' on step: not logged in" in reply["feedback"]
    assert "Run `acme login`." in reply["feedback"]
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_after_three_calls_without_a_verdict_the_agent_is_told_how_to_go_on(reviewed, judge, served):
    runner = judge(lambda _: RunnerUnavailable("not logged in"))
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        for _ in range(2):
            assert (await agent.finish(DONE))["status"] == "needs_work"
        text = await agent.refused("finished_step", outputs=DONE)
        assert text.startswith("The quality gate got no verdict in 3 calls in a row.")
        assert "quality_review_override_reason" in text
        assert "self-review" in text
        assert "in 4 calls" in await agent.refused("finished_step", outputs=DONE)
        runner.answer = lambda _: NeedsWork("Say more")
        assert (await agent.finish(DONE))["feedback"] == "Say more"
        runner.answer = lambda _: RunnerUnavailable("away again")
        reviewed.write("a.md", "More\n")  # or the verdict would still hold, and the reviewer would not be asked
        for _ in range(2):
            reply = await agent.finish(DONE)
            assert (reply["status"], "away again" in reply["feedback"]) == ("needs_work", True)
        assert "in 3 calls in a row" in await agent.refused("finished_step", outputs=DONE)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "the runner gave null, not a verdict"),
        (Passed("Fine"), "missing: 'Good'"),
        (NeedsWork("Bad"), "missing: 'Good'"),
        ({"passed": True}, "the runner gave dict, not a verdict"),
        (ValueError("oops"), "the runner failed: ValueError: oops"),
        (BadVerdict("nonsense"), "nonsense"),
        (Passed(criteria=(CriterionResult(criterion="Other", passed=True),)), "missing: 'Good'; unknown: 'Other'"),
        (Passed(criteria=(CriterionResult(criterion="Good", passed=True),) * 2), "more than once: 'Good'"),
    ],
)
async def test_whatever_is_no_verdict_is_told_as_such(reviewed, judge, served, stored, answer, why):
    runner = judge(lambda _: answer)
    runner.as_given = True
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert reply["status"] == "needs_work"
    assert why in reply["feedback"]
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_what_a_reviewer_adds_to_a_verdict_is_bounded_and_can_be_stored(reviewed, judge, served, history):
    usage = Usage(model="\ud800\x1b[2J" + "m" * 3_000_000, input_tokens=10**4299, output_tokens=-1, cost_usd=math.nan)
    result = CriterionResult(criterion="Good", passed=True, feedback="Fi\u202ene \udcff\x00")
    async with reviewed.agent(served(judge(lambda _: Passed("\x07Fine", (result,), usage)))) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"
    [verdict] = history("verdict")
    assert verdict["model"].startswith(r"?\x1b[2Jmmm")
    assert len(verdict["model"]) == 200
    assert [verdict[name] for name in ("input_tokens", "output_tokens", "cost_usd")] == [None, None, None]
    assert verdict["feedback"] == r"\x07Fine"
    assert verdict["criteria"][0]["feedback"] == r"Fi\u202ene ?\x00"


async def test_a_failed_criterion_fails_a_review_that_claims_to_have_passed(reviewed, judge, served):
    results = (CriterionResult(criterion="Good", passed=False, feedback="It is not"),)
    async with reviewed.agent(served(judge(lambda _: Passed("All is well", results)))) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert (reply["status"], reply["feedback"]) == ("needs_work", "Good: It is not")


async def test_one_review_without_a_verdict_does_not_hide_what_the_others_say(project, many, judge, served):
    files = many(3)
    answers = {"part0.md": NeedsWork("mend it"), "part1.md": RunnerUnavailable("gone"), "part2.md": Passed()}
    runner = judge(lambda request: answers[request.files[0]])
    async with project.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish({"parts": files})
    assert (reply["status"], reply["feedback"]) == ("needs_work", "mend it")
    assert "Attempt 1 of 3." in reply.get("notices", [])
    assert any("No verdict of 'judge' on part1.md: gone" in notice for notice in reply.get("notices", []))


async def test_a_review_of_an_output_that_was_not_submitted_is_left_out_and_that_is_said(
    project, judge, served, history
):
    outputs = {"a.md": output(), "more": output("files", required=False)}
    project.write_job(steps=[step("a", outputs=outputs, reviews=[review("more")]), step("b")])
    project.write("a.md")
    runner = judge(lambda _: NeedsWork("no"))
    async with project.agent(served(runner)) as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md", "more": []})
    assert reply["status"] == "next_step"
    assert "Not reviewed, because nothing was submitted for it: more." in reply.get("notices", [])
    assert history("review_skipped") == [{"run_each": "more", "reason": "no file"}]
    assert runner.requests == []


async def test_an_external_runner_may_hand_a_review_back(reviewed, judge, served, stored):
    async with reviewed.agent(served(judge(lambda _: HandedBack("Ask Ada")))) as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert (reply["status"], reply["feedback"]) == ("needs_work", "Ask Ada")
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_the_history_says_who_judged_what_by_which_criteria_and_at_what_cost(reviewed, judge, served, history):
    usage = Usage(model="opus", input_tokens=10, output_tokens=2, cost_usd=0.01)
    result = CriterionResult(criterion="Good", passed=True, feedback="Yes")
    async with reviewed.agent(served(judge(lambda _: Passed("Fine", (result,), usage)))) as agent:
        await agent.start()
        await agent.finish(DONE)
    [attempt], [verdict] = history("attempt"), history("verdict")
    assert attempt == {"number": 1, "max_attempts": 3, "max_failures": 3, "strict": False, "files": ["a.md"]}
    assert verdict["digests"]["a.md"].startswith("sha256:")
    assert verdict.pop("seconds") >= 0
    fields = {name: verdict[name] for name in verdict if name not in ("digests", "key", "subject")}
    assert fields == {
        "run_each": "step",
        "file": None,
        "runner": "judge",
        "passed": True,
        "reused": False,
        "feedback": "Fine",
        "criteria": [{"criterion": "Good", "passed": True, "feedback": "Yes"}],
        "asked": ["Good"],
        "model": "opus",
        "input_tokens": 10,
        "output_tokens": 2,
        "cost_usd": 0.01,
    }


async def test_a_missing_verdict_stands_in_the_history_with_its_reason(reviewed, judge, served, history):
    async with reviewed.agent(served(judge(lambda _: RunnerUnavailable("gone")))) as agent:
        await agent.start()
        await agent.finish(DONE)
    [entry] = history("infrastructure")
    assert (entry["kind"], entry["error"], entry["runner"]) == ("RunnerUnavailable", "gone", "judge")
    assert history("attempt_given_back") == [{"reason": "no_verdict"}]


async def test_members_of_a_group_are_judged_by_their_own_reviews(project, judge, served):
    project.write_job(
        steps=[step("a"), step("m", reviews=[review()]), step("p")], workflows={"main": ["a", ["p", "m"]]}
    )
    for name in ("a.md", "m.md", "p.md"):
        project.write(name)
    answers = [NeedsWork("not yet"), Passed()]
    async with project.agent(served(judge(lambda _: answers.pop(0)))) as agent:
        await agent.start()
        await agent.finish({"a.md": "a.md"})
        assert (await agent.finish({"m.md": "m.md"}, step_id="m"))["feedback"] == "not yet"
        project.write("m.md", "Better\n")
        assert (await agent.finish({"m.md": "m.md"}, step_id="m"))["status"] == "next_step"
        assert (await agent.finish({"p.md": "p.md"}, step_id="p"))["status"] == "workflow_complete"
