"""Programs as reviewers, and routes that send single reviews to them."""

from __future__ import annotations

import json
import sys

import anyio
import pytest

from deepwork.api import NeedsWork, Passed
from deepwork.errors import ConfigError, UnknownName
from deepwork.programs.processes import ENVIRONMENT
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}

JUDGE = """\
import json, sys, os
asked = json.load(sys.stdin)
seen = os.path.join(asked["project_root"], "seen.json")
json.dump({"asked": asked, "env": dict(os.environ), "cwd": os.getcwd()}, open(seen, "w"))
good = "TODO" not in asked["payload"]
results = [{"criterion": name, "passed": good} for name in asked["criteria"]]
usage = {"model": "grep", "input_tokens": 3, "cost_usd": 0}
print(json.dumps({"passed": good, "feedback": "" if good else "Do it", "criteria_results": results, "usage": usage}))
"""


@pytest.fixture
def command(reviewed, user_config, tmp_path):
    """Let the program `check` be Python code of the user, and give the keywords that choose it."""

    def make(code, **more):
        program = reviewed.write(tmp_path / "check.py", code)
        user_config(commands={"check": {"run": [sys.executable, "-IS", str(program)], **more}})
        return {"external_runner": "check"}

    return make


async def test_a_program_passes_and_fails_work(reviewed, command, history):
    chosen = command(JUDGE)
    reviewed.write("a.md", "TODO\n")
    async with reviewed.agent(**chosen) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["feedback"] == "Do it"
        reviewed.write("a.md", "Done\n")
        assert (await agent.finish(DONE))["status"] == "next_step"
    last = history("verdict")[-1]
    assert [last[name] for name in ("runner", "model", "input_tokens", "cost_usd")] == ["check", "grep", 3, 0.0]


async def test_a_program_is_told_everything_about_its_review(reviewed, command):
    async with reviewed.agent(**command(JUDGE)) as agent:
        begin = await agent.start()
        await agent.finish(DONE, notes="Mind the gap")
    report = json.loads((reviewed.root / "seen.json").read_text())
    request = report["asked"]
    assert request["project_root"] == str(reviewed.root)
    assert report["cwd"] == request["files_root"] != str(reviewed.root)
    assert "The work" in request["payload"]
    assert request["nonce"] in request["how_to_read"]
    same = {
        name: request[name] for name in ("version", "job_name", "step_id", "run_each", "files", "notes", "criteria")
    }
    assert same == {
        "version": 1,
        "job_name": "demo",
        "step_id": "a",
        "run_each": "step",
        "files": ["a.md"],
        "notes": "Mind the gap",
        "criteria": {"Good": "Is it good?"},
    }
    assert request["session_id"] == begin["session_id"]


async def test_a_program_sees_the_allowed_environment_and_no_more(reviewed, command, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("ACME_TOKEN", "for the vendor")
    async with reviewed.agent(**command(JUDGE, pass_env=["ACME_*"])) as agent:
        await agent.start()
        await agent.finish(DONE)
    env = json.loads((reviewed.root / "seen.json").read_text())["env"]
    assert env["ACME_TOKEN"] == "for the vendor"
    assert env["LC_ALL"] == "C.UTF-8"
    assert not {"AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY"} & env.keys()
    assert env["DEEPWORK_PROJECT_ROOT"] == str(reviewed.root)
    usual = (*ENVIRONMENT, "DEEPWORK_PROJECT_ROOT")
    assert [name for name in env if name not in usual and not name.startswith(("LC_", "XDG_", "ACME_"))] == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('fine')", "the program printed no JSON: 'fine'"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "the program printed something that is not UTF-8: '\\\\xff'"),
        ("print('[1]')", "the answer is not an object with `passed`, but list"),
        ("import sys; sys.exit('no such rule')", "the program ended with code 1: 'no such rule'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the program was killed by SIGKILL"),
        ("print('x' * 5_000_000)", "printed more than 4,194,304 bytes and was killed"),
    ],
)
async def test_a_program_that_gives_no_verdict_is_told_as_such(reviewed, command, code, why):
    async with reviewed.agent(**command(code)) as agent:
        await agent.start()
        assert why in (await agent.finish(DONE))["feedback"]


async def test_a_program_that_hangs_is_ended_at_the_limit(reviewed, command):
    async with reviewed.agent(**command("import time; time.sleep(600)"), quality_gate_timeout=1) as agent:
        await agent.start()
        with anyio.fail_after(240):
            assert "within 1 s" in (await agent.finish(DONE))["feedback"]


async def test_a_missing_program_is_told(reviewed, user_config):
    user_config(commands={"check": {"run": ["no-such-program"]}})
    async with reviewed.agent(external_runner="check") as agent:
        await agent.start()
        assert "'no-such-program' cannot be started: No such file" in (await agent.finish(DONE))["feedback"]


async def test_a_command_of_the_project_waits_for_trust_and_takes_effect_at_once(reviewed, deepwork):
    reviewed.write("check.py", JUDGE)
    run = [sys.executable, "-IS", "check.py"]
    reviewed.write(".deepwork/config.yml", json.dumps({"quality_gate": {"commands": {"check": {"run": run}}}}))
    async with reviewed.agent(external_runner="check") as agent:
        await agent.start()
        reply = await agent.finish(DONE)
        assert "is a command of this project's config.yml, and the user has not trusted it" in reply["feedback"]
        assert "deepwork trust" in reply["feedback"]
        assert not (reviewed.root / "seen.json").exists()
        await deepwork("trust", "--yes")
        assert (await agent.finish(DONE))["status"] == "next_step"


def test_a_command_may_not_have_the_name_of_a_runner(reviewed, user_config):
    user_config(commands={"self": {"run": ["true"]}})
    with pytest.raises(ConfigError, match=r"commands\.self: this name is taken by the runner of deepwork"):
        reviewed.server()


def test_a_route_to_nobody_is_refused_with_the_names_there_are(reviewed, user_config):
    user_config(commands={"lint": {"run": ["true"]}}, runners=[{"runner": "nobody"}])
    with pytest.raises(UnknownName, match=r"no review runner 'nobody' \(from quality_gate.runners\).*lint.*self"):
        reviewed.server()


@pytest.fixture
def routed(project, user_config, judge, plugins_with):
    """A step with two reviews, a server with two runners and these routes, and what each was asked."""

    def make(routes, *, chosen="deep"):
        outputs = {"code.py": output(), "text.md": output()}
        project.write_job(steps=[step("a", outputs=outputs, reviews=[review("code.py"), review("text.md"), review()])])
        project.write("code.py")
        project.write("text.md")
        user_config(runners=routes)
        runners = {"deep": judge(lambda _: Passed()), "quick": judge(lambda _: Passed())}
        return project.server(external_runner=chosen, plugins=plugins_with(**runners)), runners

    return make


BOTH = {"code.py": "code.py", "text.md": "text.md"}


@pytest.mark.parametrize(
    ("routes", "quick"),
    [
        ([{"review": "code.py", "runner": "quick"}], {"code.py"}),
        ([{"review": "step", "runner": "quick"}], {"step"}),
        ([{"job": "demo", "step": "a", "review": "text.md", "runner": "quick"}], {"text.md"}),
        ([{"job": "other", "runner": "quick"}], set()),
        ([{"step": "b", "runner": "quick"}], set()),
        ([{"runner": "quick"}], {"code.py", "text.md", "step"}),
        ([{"review": "code.py", "runner": "deep"}, {"runner": "quick"}], {"text.md", "step"}),
    ],
)
async def test_the_first_route_that_fits_decides(project, routed, routes, quick):
    server, runners = routed(routes)
    async with project.agent(server) as agent:
        await agent.start()
        assert (await agent.finish(BOTH))["status"] == "workflow_complete"
    reviewed = {name: {request.tasks[0].run_each for request in runner.requests} for name, runner in runners.items()}
    assert reviewed == {"quick": quick, "deep": {"code.py", "text.md", "step"} - quick}


async def test_what_is_left_to_self_review_is_handed_back_once_the_rest_has_passed(project, routed):
    server, runners = routed([{"review": "code.py", "runner": "quick"}], chosen=None)
    runners["quick"].answer = lambda _: NeedsWork("Does not compile")
    async with project.agent(server) as agent:
        begin = await agent.start()
        file = project.state / f"quality_review_{begin['session_id']}_a.md"
        assert (await agent.finish(BOTH))["feedback"] == "Does not compile"
        assert not file.exists()
        runners["quick"].answer = lambda _: Passed()
        project.write("code.py", "fixed\n")
        reply = await agent.finish(BOTH)
        assert (reply["status"], file.exists()) == ("needs_work", True)
        assert "spawn a subagent" in reply["feedback"].lower()
        text = file.read_text()
        assert "output 'text.md'" in text
        assert "output 'code.py'" not in text
        reply = await agent.finish(BOTH, quality_review_override_reason="The subagent passed it")
        assert reply["status"] == "workflow_complete"


async def review_held(agent, runner, files, *, at_once):
    """Report files that are reviewed one by one, and hold the reviews: so many begin, and no more while they run."""
    runner.hold = True
    await agent.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.finish, {"parts": files})
        with anyio.fail_after(240):
            while runner.running < at_once:  # noqa: ASYNC110 - what a test waits for has no event
                await anyio.sleep(0.005)
        for _ in range(5):  # a further review would be prepared in a thread before the work of these calls
            await agent.call("get_workflows")
        assert runner.running == at_once
        runner.release.set()
    assert (runner.most, len(runner.requests)) == (at_once, len(files))


async def test_four_reviews_run_at_once_unless_told_otherwise(project, many, judge, served):
    files, runner = many(12), judge(lambda _: Passed())
    async with project.agent(served(runner)) as agent:
        await review_held(agent, runner, files, at_once=4)


async def test_the_pool_is_the_limit_for_all_reviewers_together(project, many, judge, plugins_with, user_config):
    user_config(concurrency=3, runners=[{"review": "parts", "runner": "quick"}])
    files = many(12)

    runner = judge(lambda _: Passed())
    async with project.agent(external_runner="quick", plugins=plugins_with(quick=runner)) as agent:
        await review_held(agent, runner, files, at_once=3)
