"""Trust covers what runs: the words of a command and the files of the project that they name, at each use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork.api import TrustedCommand, open_context
from deepwork.errors import ProgramMissing
from deepwork.paths.user_folders import user_config_file
from deepwork.project.trust import MAX_REFUSALS

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
PASSES = (
    'import json, sys; results = [{"criterion": name, "passed": True} for name in json.load(sys.stdin)["criteria"]]; '
    'print(json.dumps({"passed": True, "feedback": "%s", "criteria_results": results}))'
)
CONFIG = f"quality_gate: {{runner: check, commands: {{check: {{run: [{sys.executable}, -I, tools/check.py]}}}}}}\n"


@pytest.fixture
def checked(reviewed):
    """A project whose reviewer is a script of its own, in its own configuration."""
    reviewed.write("tools/check.py", PASSES % "one")
    reviewed.write(".deepwork/config.yml", CONFIG)
    return reviewed


def trust(project, *arguments, answers=""):
    """Run `deepwork trust` and give what it printed."""
    command = [sys.executable, "-m", "deepwork", "trust", "--path", str(project.root), *arguments]
    cwd = os.path.dirname(project.root)
    return subprocess.run(command, input=answers, capture_output=True, text=True, timeout=240, cwd=cwd)


def decisions():
    """Find the file of decisions in the user's state folder."""
    return list(Path(os.environ["XDG_STATE_HOME"]).rglob("trust.json"))


def store_refusals(project, refused):
    """Write the file of decisions as it is after these refusals."""
    state = Path(os.environ["XDG_STATE_HOME"], "deepwork")
    state.mkdir(parents=True)
    (state / "trust.json").write_text(json.dumps({str(project.root): {"granted": {}, "refused": refused}}))


async def finish(project):
    """Report the first step, and give what the agent is told."""
    async with project.agent(external_runner="check") as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    return reply["status"], reply.get("feedback")


async def test_a_script_that_changes_after_it_was_trusted_does_not_run(checked):
    """F4, a04: a pull that changes the script is asked about again, although the setting is the same."""
    assert (await finish(checked))[0] == "needs_work"
    output = trust(checked, "--yes").stdout
    assert PASSES % "one" in output
    assert (await finish(checked))[0] == "next_step"
    checked.write("tools/check.py", PASSES % "two")
    status, feedback = await finish(checked)
    assert (status, "the user has not trusted it" in feedback) == ("needs_work", True)
    again = trust(checked)
    assert f"-{PASSES % 'one'}" in again.stdout
    assert f"+{PASSES % 'two'}" in again.stdout


async def test_what_is_granted_is_what_is_there_now_and_not_what_was_refused_before(checked):
    """F4, a05: a harmless script is trusted, then the one refused earlier is put back."""
    checked.write("tools/check.py", PASSES % "evil")
    assert (await finish(checked))[0] == "needs_work"
    checked.write("tools/check.py", PASSES % "harmless")
    trust(checked, "--yes")
    assert (await finish(checked))[0] == "next_step"
    checked.write("tools/check.py", PASSES % "evil")
    assert (await finish(checked))[0] == "needs_work"


async def test_a_command_of_the_user_that_names_a_file_of_the_project_waits_for_trust(checked):
    """The words are the user's, the file belongs to the author of the repository."""
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((checked.root / ".deepwork/config.yml").read_text())
    (checked.root / ".deepwork/config.yml").unlink()
    status, feedback = await finish(checked)
    assert (status, "runs a file of this project" in feedback) == ("needs_work", True)
    trust(checked, "--yes")
    assert (await finish(checked))[0] == "next_step"


async def test_the_bytes_that_were_hashed_are_the_bytes_that_run(project):
    """F4, a11: a swap between hashing and running changes nothing."""
    project.write("tools/check.sh", "echo one\n")
    async with open_context("demo", project.root) as context:
        command = TrustedCommand("a command", ("sh", "tools/check.sh", "--lib=tools/check.sh", "plain"))
        async with context.prepared(command) as arguments:
            assert arguments is None
        command = TrustedCommand("setting x", ("sh", "tools/check.sh", "--lib=tools/check.sh", "plain"))
        context.trust.grant([_request(context, command)])
        async with context.prepared(command) as arguments:
            project.write("tools/check.sh", "echo two\n")
            copies = [arguments[1], arguments[2].removeprefix("--lib=")]
            texts = [_text(copy) for copy in copies]
    assert texts == ["echo one\n"] * 2
    assert arguments[0] == "sh"
    assert arguments[3] == "plain"
    assert not any(map(os.path.exists, copies))


def _text(path):
    assert os.stat(path).st_mode & 0o077 == 0
    with open(path) as file:
        return file.read()


def _request(context, command):
    from deepwork.project.trusted_commands import pending_request

    return pending_request(command, context.project_root, context.trust, owner="demo")


async def test_a_link_that_leads_out_of_the_project_cannot_be_trusted_as_a_file_of_it(project, tmp_path):
    project.write(tmp_path / "outside.sh", "echo outside\n")
    (project.root / "check.sh").symlink_to(tmp_path / "outside.sh")
    command = TrustedCommand("x", ("sh", "check.sh"), needs_trust=False)
    async with open_context("demo", project.root) as context:
        with pytest.raises(ProgramMissing, match=r"'check\.sh' is a link that leads out of the project"):
            async with context.prepared(command):
                pytest.fail("it was made ready")


async def test_when_no_more_refusals_are_kept_a_known_one_is_still_shown_as_it_is_now(project):
    """A repository can cause any number of refusals, but not hide what it now asks for behind them."""
    store_refusals(project, {f"demo: {number}": "harmless" for number in range(MAX_REFUSALS)})
    async with open_context("demo", project.root) as context:
        assert not context.trusts("0", "rm -rf /")
        assert not context.trusts("new", "curl evil.example")
    output = trust(project).stdout
    assert "rm -rf /" in output
    assert "curl evil.example" not in output


async def test_use_writes_nothing_into_the_decisions_of_the_user(checked):
    """F10, b03: a repository with very many commands cannot make the server rewrite its user's file."""
    await finish(checked)
    assert decisions() == []


def test_a_decision_is_written_once_and_drops_what_was_refused_before(checked):
    store_refusals(checked, {"demo: gone": "rm -rf /"})
    trust(checked, "--yes")
    [file] = decisions()
    record = json.loads(file.read_text())[str(checked.root)]
    assert record["refused"] == {}
    assert "setting quality_gate.commands.check" in record["granted"]
