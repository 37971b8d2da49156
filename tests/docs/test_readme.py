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

from deepwork.loading.discovery import installed
from deepwork.testing import Agent

ROOT = Path(__file__).parents[2]

# Stands in for `python3 -m venv`: an environment whose pip looks whether there is what it is to install, and gives the
# program of the environment that runs the tests.
VENV = f"""#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 2
mkdir -p "$3/bin"
cat > "$3/bin/pip" << END
#!/bin/sh
shift
ls -d "\\$@" && ln -s {Path(sys.executable).parent}/deepwork "$3/bin/deepwork"
END
chmod +x "$3/bin/pip"
"""

pytestmark = pytest.mark.anyio


class Newcomer:
    """Somebody with an empty home and a project of their own, who has Claude Code and reads the README."""

    def __init__(self, folder, readme, variables, checkout=ROOT):
        self.home, self.project = folder / "home", folder / "project"
        for place in (self.home, self.project):
            place.mkdir()
        self.environment = {"HOME": str(self.home), **variables}
        commands = [block.text for block in readme.blocks() if block.language == "bash"]
        install = next(text for text in commands if "pip install" in text)
        set_up = next(text for text in commands if "deepwork init" in text)
        self.commands = f"cd '{checkout}'\n{install}cd '{self.project}'\n{set_up}"

    def follow(self):
        """Run the README's commands, from the installation on, in one shell, and return what they have printed."""
        return self.run(f"set -e\n{self.commands}")

    def run(self, script):
        """Run a script in the project, as a shell in which the README's lines were typed."""
        command = ["bash", "-c", f'export PATH="$HOME/.deepwork-venv/bin:$PATH"\n{script}']
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
    for name, text in (("python3", VENV), ("claude", "#!/bin/sh\necho 2.1.0\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    readme = page("README.md")
    plugins = [plugin.name for plugin in installed() if not plugin.builtin]
    left_out = [name for name in plugins if f"./plugins/deepwork_{name}" not in readme.text]
    variables = {"PATH": f"{programs}{os.pathsep}{path_without_clients}", "DEEPWORK_NO_PLUGINS": ",".join(left_out)}
    return Newcomer(tmp_path, readme, variables)


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
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    path = f"{tmp_path}{os.pathsep}{os.pathsep.join(_system_folders(path_without_clients))}"
    newcomer = Newcomer(tmp_path, page("README.md"), {**pip, "PATH": path}, checkout)
    printed = newcomer.follow()
    installed_by_it = re.findall(r"\./plugins/deepwork_(\w+)", newcomer.commands)
    assert installed_by_it
    assert [name for name in installed_by_it if f"(plugin '{name}'): " not in printed] == []
    assert f"{newcomer.home}/.deepwork-venv/bin/deepwork serve" in printed


def _system_folders(path):
    """Leave out the environment that runs the tests, whose python3 is no newcomer's."""
    return [folder for folder in path.split(os.pathsep) if not Path(folder).is_relative_to(sys.prefix)]
