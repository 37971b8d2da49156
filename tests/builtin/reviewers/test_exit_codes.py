"""Programs whose exit code is the verdict, in the folder of copies and in the project itself."""

from __future__ import annotations

import json
import os
import sys

import pytest

from deepwork.paths.user_folders import user_config_file

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


@pytest.fixture
def gate(reviewed):
    """Let a shell script of the user's configuration be the gate, and give the keywords that choose it."""

    def make(script, **more):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        command = {"run": ["sh", "-c", script], "verdict": "exit_code", **more}
        file.write_text(json.dumps({"quality_gate": {"commands": {"tests": command}}}))
        return {"external_runner": "tests"}

    return make


async def finished(reviewed, chosen):
    async with reviewed.agent(**chosen) as agent:
        await agent.start()
        return await agent.finish(DONE)


async def test_a_program_that_ends_with_0_passes_every_criterion(reviewed, gate, history):
    assert (await finished(reviewed, gate("echo anything, no JSON")))["status"] == "next_step"
    [verdict] = history("verdict")
    assert [result["passed"] for result in verdict["criteria"]] == [True]


@pytest.mark.parametrize("code", [1, 2, 5, 125, 128, 139, 255])
async def test_any_other_code_fails_with_what_the_program_has_printed(reviewed, gate, history, code):
    reply = await finished(reviewed, gate(f"echo 1 failed; echo see the log >&2; exit {code}"))
    assert reply["status"] == "needs_work"
    assert f"The program ended with code {code}." in reply["feedback"]
    assert "stdout:\n1 failed" in reply["feedback"]
    assert "stderr:\nsee the log" in reply["feedback"]
    assert len(history("attempt_given_back")) == 0


async def test_a_long_output_is_told_by_its_last_2000_characters(reviewed, gate):
    long = "i=0; while [ $i -lt 400 ]; do echo line $i of the log; i=$((i+1)); done; echo THE END; exit 1"
    feedback = (await finished(reviewed, gate(long)))["feedback"]
    assert "the last 2,000 characters of stdout:" in feedback
    assert feedback.endswith("THE END")
    assert "line 399 of the log" in feedback
    assert "line 300 of the log" not in feedback


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 126", "ended with code 126"),
        ("no_such_program_at_all", "ended with code 127"),
        ("kill -KILL $$", "was killed by SIGKILL"),
        ("kill -SEGV $$", "was killed by SIGSEGV"),
    ],
)
async def test_a_program_that_could_not_run_or_was_killed_gives_no_verdict(reviewed, gate, history, script, why):
    reply = await finished(reviewed, gate(script))
    assert reply["status"] == "needs_work"
    assert why in reply["feedback"]
    assert history("verdict") == []
    assert len(history("attempt_given_back")) == 1


async def test_a_program_that_is_too_slow_gives_no_verdict(reviewed, gate, history):
    await finished(reviewed, {**gate("sleep 600"), "quality_gate_timeout": 1})
    assert history("verdict") == []


async def test_it_runs_in_the_folder_of_copies_unless_the_project_is_named(reviewed, gate):
    feedback = (await finished(reviewed, gate("pwd; echo $DEEPWORK_PROJECT_ROOT; exit 1")))["feedback"]
    folder, project = feedback.partition("stdout:\n")[2].splitlines()
    assert folder != project == str(reviewed.root)


async def test_in_the_project_it_sees_what_is_there(reviewed, gate):
    reviewed.write("beside.txt", "seen\n")
    feedback = (await finished(reviewed, gate("pwd; cat beside.txt; exit 1", folder="project")))["feedback"]
    assert feedback.endswith(f"stdout:\n{reviewed.root}\nseen")


async def test_a_gate_in_the_project_is_asked_again_though_the_outputs_are_the_same(reviewed, gate):
    """It judges more than the outputs: the agent may have fixed the code beside them."""
    async with reviewed.agent(**gate("test -e fixed", folder="project")) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "needs_work"
        reviewed.write("fixed")
        assert (await agent.finish(DONE))["status"] == "next_step"


async def test_a_gate_in_the_folder_of_copies_is_not_asked_twice_about_the_same_files(reviewed, gate):
    async with reviewed.agent(**gate('test -e "$DEEPWORK_PROJECT_ROOT/fixed"')) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "needs_work"
        reviewed.write("fixed")
        assert (await agent.finish(DONE))["status"] == "needs_work"


async def test_a_gate_in_the_project_that_changes_the_work_while_it_judges_is_not_believed(reviewed, gate, history):
    reply = await finished(reviewed, gate("echo tampered > a.md; exit 0", folder="project"))
    assert reply["status"] == "needs_work"
    assert "Changed while they were reviewed" in reply["feedback"]


@pytest.fixture
def environment(reviewed):
    """A virtual environment in the project, whose program leads out of it, as `python -m venv` makes it."""
    folder = reviewed.root / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    (folder / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    return folder


def configured(project, run, **more):
    command = {"run": run, "verdict": "exit_code", "folder": "project", **more}
    project.write(".deepwork/config.yml", json.dumps({"quality_gate": {"commands": {"tests": command}}}))


async def test_the_python_of_an_environment_in_the_project_runs_as_itself_once_its_link_is_trusted(
    reviewed, environment, deepwork
):
    configured(reviewed, [".venv/bin/python", "-c", "import sys; sys.exit(sys.prefix)"])
    async with reviewed.agent(external_runner="tests") as agent:
        await agent.start()
        assert "the user has not trusted it" in (await agent.finish(DONE))["feedback"]
        output = await deepwork("trust", "--yes")
        assert f"a link: {os.readlink(environment / 'bin' / 'python')}, which is " in output
        reply = await agent.finish(DONE)
        assert str(environment) in reply["feedback"]  # sys.prefix: the program has found its environment
        (environment / "bin" / "python").unlink()
        (environment / "bin" / "python").symlink_to("/bin/sh")
        reviewed.write("a.md", "other work\n")
        assert "the user has not trusted it" in (await agent.finish(DONE))["feedback"]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (["tools/check"], "'tools/check' is a link that leads out of the project"),
        (["sh", "tools/check"], "'tools/check' is a link that leads out of the project"),
        (["no-such-program-at-all"], "'no-such-program-at-all' cannot be started: No such file or directory in PATH"),
    ],
)
async def test_why_a_gate_cannot_run_is_told_alike_by_gate_trust_try_and_doctor(
    reviewed, tmp_path, deepwork, run, reason
):
    (tmp_path / "outside").write_text("#!/bin/sh\n")
    (reviewed.root / "tools").mkdir()
    (reviewed.root / "tools" / "check").symlink_to(tmp_path / "outside")
    configured(reviewed, run)
    assert f"cannot run  setting quality_gate.commands.tests: {reason}" in await deepwork("trust", "--yes")
    async with reviewed.agent(external_runner="tests") as agent:
        await agent.start()
        feedback = (await agent.finish(DONE))["feedback"]
    assert reason in feedback
    assert "Ask the user to correct quality_gate.commands.tests." in feedback
    assert reason in await deepwork("gate", "try", "demo", "a", "--file", "a.md", "--runner", "tests", code=1)
    doctor = await deepwork("doctor", code=1)
    assert reason in doctor
    assert "correct its `run` in the configuration" in doctor


async def test_a_script_of_the_project_that_is_trusted_is_not_told_as_missing(reviewed, deepwork):
    file = reviewed.write("tools/check", "#!/bin/sh\nexit 0\n")
    file.chmod(0o755)
    configured(reviewed, ["tools/check"])
    assert "cannot run" not in await deepwork("trust", "--yes")
    assert (await finished(reviewed, {"external_runner": "tests"}))["status"] == "next_step"
    assert "cannot be started" not in await deepwork("doctor")


async def test_what_was_trusted_before_there_were_these_keys_stays_trusted(reviewed, deepwork):
    """The defaults are not part of the trusted content."""
    reviewed.write("check.py", "")
    run = [sys.executable, "check.py"]
    reviewed.write(".deepwork/config.yml", json.dumps({"quality_gate": {"commands": {"c": {"run": run}}}}))
    assert '"verdict"' not in await deepwork("trust", "--yes")
    explicit = {"run": run, "verdict": "json", "folder": "copy"}
    reviewed.write(".deepwork/config.yml", json.dumps({"quality_gate": {"commands": {"c": explicit}}}))
    assert "nothing that waits for approval" in await deepwork("trust", "--yes")
    reviewed.write(
        ".deepwork/config.yml", json.dumps({"quality_gate": {"commands": {"c": {**explicit, "folder": "project"}}}})
    )
    assert '"folder": "project"' in await deepwork("trust", "--yes")
