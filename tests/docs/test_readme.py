"""The README's commands as they stand, in an empty home, set up an agent that is reminded and a person who is heard."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from deepwork.testing import Agent

ROOT = Path(__file__).parents[2]

# Stands in for `make`: links the program of the environment that runs the tests to where `make install` does.
MAKE = f"""#!/bin/sh
[ "$*" = install ] && [ -f Makefile ] || exit 2
mkdir -p "$HOME/.local/bin" && ln -s {Path(sys.executable).parent}/deepwork "$HOME/.local/bin/deepwork"
"""

pytestmark = pytest.mark.anyio


class Newcomer:
    """Somebody with an empty home and a project of their own, who has Claude Code and reads the README."""

    def __init__(self, folder, readme, variables, checkout=ROOT):
        self.home, self.project = folder / "home", folder / "project"
        for place in (self.home, self.project):
            place.mkdir()
        self.readme = readme.text
        self.environment = {"HOME": str(self.home), **variables}
        commands = [block.text for block in readme.blocks() if block.language == "bash"]
        install = next(text for text in commands if "make install" in text)
        set_up = next(text for text in commands if "deepwork init" in text)
        self.commands = f"cd '{checkout}'\n{install}cd '{self.project}'\n{set_up}"

    def follow(self):
        """Run the README's commands, from the installation on, in one shell, and return what they have printed."""
        return self.run(f"set -e\n{self.commands}")

    def run(self, script):
        """Run a script in the project, as a shell in which the README's lines were typed."""
        command = ["bash", "-c", f'export PATH="$HOME/.local/bin:$PATH"\n{script}']
        pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        result = subprocess.run(command, cwd=self.project, env=self.environment, timeout=600, **pipes)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def hook(self, event, **data):
        """Return what the hook of Claude Code answers to an event, started as its settings say."""
        settings = json.loads((self.project / ".claude/settings.local.json").read_text())
        [entry] = settings["hooks"][event]
        stdin = {"session_id": "window", "cwd": str(self.project), "hook_event_name": event, **data}
        pipes = {"input": json.dumps(stdin), "capture_output": True, "text": True, "timeout": 240}
        environment = {**self.environment, "DEEPWORK_HOOK_SECONDS": "60"}
        result = subprocess.run(entry["hooks"][0]["command"], shell=True, cwd=self.project, env=environment, **pipes)
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture
def newcomer(tmp_path, page, path_without_clients):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("make", MAKE), ("claude", "#!/bin/sh\necho 2.1.0\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return Newcomer(tmp_path, page("README.md"), {"PATH": f"{programs}{os.pathsep}{path_without_clients}"})


@pytest.mark.slow
async def test_an_agent_that_stops_at_every_step_is_reminded_at_each_and_reads_what_a_person_has_written(newcomer):
    """Nothing is set up besides what the README's own lines set up."""
    printed = newcomer.follow()
    assert '"Start the project_tour job with deepwork."' in printed
    [entry] = json.loads((newcomer.project / ".mcp.json").read_text())["mcpServers"].values()
    transport = StdioTransport(entry["command"], entry["args"], env=newcomer.environment, cwd=str(newcomer.project))
    reminded, heard = [], ""
    async with Client(transport) as client:
        agent = Agent(client)
        reply = {"begin_step": await agent.start("project_tour", "write_tour"), "stack": []}
        tool = "start_workflow"
        while step := reply.get("begin_step"):
            content = [{"type": "text", "text": json.dumps(reply)}]
            newcomer.hook("PostToolUse", tool_name=f"mcp__deepwork__{tool}", tool_input={}, tool_response=content)
            reminder = json.loads(newcomer.hook("Stop", stop_hook_active=bool(reminded)))
            assert f"step_id='{step['step_id']}'" in reminder["reason"]
            reminded.append(step["step_id"])
            if len(reminded) == 1:
                named = f"{step['session_id']} {step['step_id']}"
                newcomer.run(f"deepwork sessions reopen {named} --reason 'Name the tests, too'")
            outputs = {output["name"]: f"{output['name']}.md" for output in step["step_expected_outputs"]}
            for path in outputs.values():
                (newcomer.project / path).write_text("# Notes\n")
            tool, report = "finished_step", {"outputs": outputs, "session_id": step["session_id"]}
            reply = await agent.call(tool, **report, step_id=step["step_id"])
            heard = heard or reply.get("feedback", "")
            if reply["status"] == "needs_work":
                reply = await agent.call(tool, **report, quality_review_override_reason="A subagent found it good")
    assert reminded == ["survey", "write"]
    assert "Name the tests, too" in heard
    assert reply["status"] == "workflow_complete"
    assert newcomer.hook("Stop", stop_hook_active=True) == ""


@pytest.mark.external
def test_the_readme_installs_into_an_empty_home(tmp_path, page, path_without_clients):
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True)
    shutil.copy(ROOT / "README.md", checkout)
    (tmp_path / "claude").write_text("#!/bin/sh\necho 2.1.0\n")
    (tmp_path / "claude").chmod(0o755)
    # Which package index there is, and whose certificates are believed, says the machine.
    # pip asks rustc for its version, which leaves a file in a home that is new to it.
    rust = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))}
    network = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_CERT_"))}
    path = f"{tmp_path}{os.pathsep}{os.pathsep.join(_system_folders(path_without_clients))}"
    newcomer = Newcomer(tmp_path, page("README.md"), {**network, **rust, "PATH": path}, checkout)
    printed = newcomer.follow()
    assert "verified   the server lists" in printed
    report = json.loads(newcomer.run("deepwork doctor --json"))
    assert report["install"] == {"route": "checkout", "upgrade": f"make -C {checkout} install"}
    texts = " ".join(finding["text"] for finding in report["findings"])
    named = re.findall(r"^\| `deepwork_(\w+)`", newcomer.readme, re.MULTILINE)
    assert named
    assert [name for name in named if f"(plugin '{name}'): " not in texts] == []
    newcomer.run(f"make -C '{checkout}' uninstall DATA=1")
    leftovers = [path for path in newcomer.home.rglob("*") if path.is_file() and ".cache" not in path.parts]
    assert leftovers == []


def _system_folders(path):
    """Leave out the environment that runs the tests: a newcomer does not have its python3."""
    return [folder for folder in path.split(os.pathsep) if not Path(folder).is_relative_to(sys.prefix)]
