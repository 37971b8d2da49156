"""JOBS-REQ-001.1.6, .7 and 001.4.11-14: reviewers outside of the agent that made the work."""

from __future__ import annotations

import pytest

from deepwork import hookimpl
from deepwork.api import NeedsWork, Passed, ReviewRunnerSpec
from deepwork.errors import UnknownName
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.server import create_server
from deepwork.testing import ScriptedRunner, review, step
from deepwork.testing.fakes import answered

pytestmark = pytest.mark.anyio

DONE_A = {"a.md": "a.md"}


@pytest.fixture
def reviewed(project):
    """A project whose job has a review in its first step, and the files of both steps."""
    project.write_job(steps=[step("a", reviews=[review("step"), review("a.md")]), step("b")])
    project.write("a.md")
    project.write("b.md")
    return project


@pytest.fixture
def judged_by(reviewed):
    """Make a server whose external runner gives these verdicts, one after the other."""

    def make(*verdicts, **options):
        runner = ScriptedRunner(verdicts)

        class Runners:
            @hookimpl
            def deepwork_review_runners(self):
                yield ReviewRunnerSpec(name="claude", create=lambda: runner, max_inline_files=5)

        candidates = [candidate for candidate in installed() if candidate.name != "claude_runner"]
        plugins = PluginManager(candidates=[*candidates, Candidate("scripted", "scripted-dist", "1.0", Runners)])
        return create_server(reviewed.root, external_runner="claude", plugins=plugins, **options), runner

    return make


@pytest.mark.req("JOBS-REQ-001.1.6")
def test_without_a_runner_reviews_are_the_agents_own(probed):
    assert probed().engine.gate.cli is None


@pytest.mark.req("JOBS-REQ-001.1.6")
async def test_the_chosen_runner_is_asked(reviewed, judged_by):
    server, runner = judged_by(Passed())
    async with reviewed.agent(server) as agent:
        await agent.start()
        await agent.finish(DONE_A)
    assert {request.tasks[0].run_each for request in runner.requests} == {"step", "a.md"}


@pytest.mark.req("JOBS-REQ-001.1.6")
def test_claude_that_is_not_installed_is_named_with_its_distribution(project):
    plugins = PluginManager(candidates=[candidate for candidate in installed() if candidate.builtin])
    with pytest.raises(UnknownName, match="no review runner 'claude'") as error:
        create_server(project.root, external_runner="claude", plugins=plugins)
    assert error.value.hint == "Install the distribution deepwork-claude-runner."


@pytest.mark.req("JOBS-REQ-001.1.7")
def test_claude_is_a_quality_gate_with_a_claude_cli_and_five_inline_files(probed):
    runner = pytest.importorskip("deepwork_claude_runner.runner", reason="deepwork-claude-runner is not installed")
    gate = probed(enable_quality_gate=True, external_runner="claude").engine.gate
    assert type(gate).__name__ == "QualityGate"
    assert isinstance(gate.cli, runner.ClaudeCLI)
    assert gate.max_inline_files == 5


@pytest.mark.req("JOBS-REQ-001.1.7")
def test_with_the_gate_off_no_runner_is_looked_for(probed):
    assert probed(enable_quality_gate=False, external_runner="nobodys").engine.gate is None


@pytest.mark.req("JOBS-REQ-001.4.11")
async def test_an_attempt_is_recorded_before_the_runner_is_asked(reviewed, judged_by, stored):
    server, runner = judged_by(Passed())
    states = []

    async def look(request):
        states.append(stored(request.session_id))
        return answered(Passed(), request)

    runner.review = look
    async with reviewed.agent(server) as agent:
        await agent.start()
        await agent.finish(DONE_A)
    assert [session["step_progress"]["a"]["quality_attempts"] for session in states] == [1, 1]
    assert states[0]["history"][-1]["kind"] == "attempt"


@pytest.mark.req("JOBS-REQ-001.4.12")
async def test_below_the_maximum_the_feedback_of_all_failed_reviews_is_returned(reviewed, judged_by):
    server, runner = judged_by()

    async def refuse(request):
        return answered(NeedsWork(f"Mend {request.tasks[0].run_each}"), request)

    runner.review = refuse
    async with reviewed.agent(server) as agent:
        await agent.start()
        reply = await agent.finish(DONE_A)
        assert reply["status"] == "needs_work"
        assert reply["feedback"] == "Mend step; Mend a.md"
        assert [failed["review_run_each"] for failed in reply["failed_reviews"]] == ["step", "a.md"]


@pytest.mark.req("JOBS-REQ-001.4.13")
async def test_at_the_maximum_an_error_says_so_and_includes_the_feedback(reviewed, judged_by):
    server, _ = judged_by(NeedsWork("Mend it"))
    async with reviewed.agent(server) as agent:
        await agent.start()
        for _ in range(2):
            assert (await agent.finish(DONE_A))["status"] == "needs_work"
        text = await agent.refused("finished_step", outputs=DONE_A)
    assert text.startswith("Quality gate failed after 3 attempts: Mend it; Mend it")


@pytest.mark.req("JOBS-REQ-001.4.14")
async def test_when_all_reviews_pass_the_step_is_completed(reviewed, judged_by, stored):
    server, _ = judged_by(NeedsWork("No"), NeedsWork("No"), Passed())
    async with reviewed.agent(server) as agent:
        begin = await agent.start()
        assert (await agent.finish(DONE_A))["status"] == "needs_work"
        reviewed.write("a.md", "better\n")
        reply = await agent.finish(DONE_A)
    assert (reply["status"], reply["begin_step"]["step_id"]) == ("next_step", "b")
    assert stored(begin["session_id"])["step_progress"]["a"]["completed_at"]
