"""A route with several reviewers: they judge one after the other, and all have to pass."""

from __future__ import annotations

import pytest

from deepwork.api import NeedsWork, Passed, same_verdict
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio


@pytest.fixture
def listed(project, judge, plugins_with, user_config):
    """A step of two files that are judged by runners `one`, `two` and `three`, in this order."""

    def make(names=("one", "two", "three")):
        project.write_job(steps=[step("a", outputs={"parts": output("files")}, reviews=[review("parts")])])
        files = [project.write(f"part{number}.md", f"Part {number}\n").name for number in range(2)]
        user_config(runners=[{"review": "parts", "runner": [*names]}])
        runners = {
            name: judge(lambda request: same_verdict(request.criteria, passed=True)) for name in ("one", "two", "three")
        }
        return project.agent(plugins=plugins_with(**runners)), runners, {"parts": files}

    return make


def asked(runners):
    return {name: len(runner.requests) for name, runner in runners.items()}


async def test_all_reviewers_of_a_list_have_to_pass_and_each_is_in_the_history(listed, history):
    agents, runners, files = listed()
    async with agents as agent:
        await agent.start()
        assert (await agent.finish(files))["status"] == "workflow_complete"
    assert asked(runners) == {"one": 2, "two": 2, "three": 2}
    by_file = {}
    for verdict in history("verdict"):
        by_file.setdefault(verdict["file"], []).append(verdict["runner"])
    assert by_file == {"part0.md": ["one", "two", "three"], "part1.md": ["one", "two", "three"]}


async def test_the_first_that_fails_ends_the_list_with_one_result(listed, history):
    agents, runners, files = listed()
    runners["two"].answer = lambda request: same_verdict(
        request.criteria, passed="part1.md" not in request.files, feedback="Second"
    )
    async with agents as agent:
        await agent.start()
        reply = await agent.finish(files)
    assert [(failed["target_file"], failed["feedback"]) for failed in reply["failed_reviews"]] == [
        ("part1.md", "Second")
    ]
    assert asked(runners) == {"one": 2, "two": 2, "three": 1}
    assert len(history("verdict")) == 5


async def test_what_has_passed_in_a_list_is_not_asked_again(listed):
    agents, runners, files = listed()
    runners["two"].answer = lambda _: NeedsWork("Not this time")
    async with agents as agent:
        await agent.start()
        await agent.finish(files)
        runners["two"].answer = lambda request: same_verdict(request.criteria, passed=True)
        reply = await agent.finish(files)
    assert reply["status"] == "needs_work", "a failure stays one until the work changes"
    assert asked(runners) == {"one": 2, "two": 2, "three": 0}


async def test_no_verdict_ends_the_list(listed, history):
    agents, runners, files = listed()
    runners["one"].answer = lambda _: RuntimeError("away")
    async with agents as agent:
        await agent.start()
        assert "not judged" in (await agent.finish(files))["feedback"]
    assert asked(runners) == {"one": 2, "two": 0, "three": 0}
    assert {entry["runner"] for entry in history("infrastructure")} == {"one"}


async def test_reviews_of_a_list_are_handed_back_after_its_verdicts(project, listed):
    agents, runners, files = listed(("self", "one"))
    runners["one"].answer = lambda request: same_verdict(request.criteria, passed=False, feedback="First")
    async with agents as agent:
        await agent.start()
        assert (await agent.finish(files))["feedback"] == "First; First"
        runners["one"].answer = lambda request: same_verdict(request.criteria, passed=True)
        for name in files["parts"]:
            project.write(name, "Better\n")
        assert "subagent" in (await agent.finish(files))["feedback"]


@pytest.mark.parametrize(
    ("runner", "words"),
    [
        ([], "a list of runners has at least one"),
        (["one", 2], "the name of a runner, or a list of names, not "),
        (["one", "one"], "names a runner more than once"),
        (["one", "nobody"], "no review runner 'nobody'"),
        ({"one": 1}, "the name of a runner, or a list of names, not "),
        (None, "the name of a runner, or a list of names, not null"),
    ],
)
def test_a_wrong_list_is_refused_with_a_sentence(project, user_config, judge, plugins_with, runner, words):
    user_config(runners=[{"runner": runner}])
    with pytest.raises(Exception, match=words):
        project.server(plugins=plugins_with(one=judge(lambda _: Passed())))
