"""What a person says reaches the very next request of the model of a real client, after any of its tools."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from claude_desk import PROGRAM, START, Desk, RecordingModel
from client_desks import ClientDesk
from scripted_models import ARGUMENTS, ScriptedCodexModel, codex_call

from deepwork.api import project_at
from deepwork.ports.inbox import Answerer

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]

PERSON = Answerer(user="ada", terminal="/dev/pts/0")
CHILD = "Do your part"
SHELL = {"name": "exec_command", "arguments": {"cmd": "echo hi"}}


def do(project, act, text):
    """Do what a person does to the one session of a project."""

    async def done():
        access = project_at(project)
        try:
            [file] = (project / ".deepwork" / "tmp").glob("session_*.json")
            changes = access.interventions()
            await getattr(changes, act)(await changes.named(json.loads(file.read_text())["session_id"]), text, PERSON)
        finally:
            await access.close()

    anyio.run(done)


class Talked(RecordingModel):
    """A model whose user speaks before the turns of these numbers."""

    def __init__(self, project, acts):
        super().__init__()
        self.requests = []
        self._project = project
        self._acts = acts

    def next_turn(self, body):
        if body.get("tools"):  # the client also asks for titles
            self.requests.append(json.dumps(body["messages"]))
            if act := self._acts.pop(len(self.requests), None):
                do(self._project, *act)
        return super().next_turn(body)


def bash(command, number):
    return {"id": f"toolu_bash{number}", "tool": "Bash", "input": {"command": command, "description": "a command"}}


@pytest.fixture
def talk(node_clients, tmp_path):
    """Let an agent work in Claude Code while its user speaks, and return what the model was sent."""

    def talk(acts, turns, *, plugin=False):
        desk = Desk.make(tmp_path, node_clients)
        if plugin:
            desk.run(PROGRAM, "connect", "claude", "--remove")
            folder = str(tmp_path / "plugin")
            desk.run(PROGRAM, "connect", "claude", "--plugin", folder)
            desk.run("claude", "plugin", "marketplace", "add", folder)
            desk.run("claude", "plugin", "install", "deepwork@deepwork")
        model = Talked(desk.project, acts)
        tools = "mcp__deepwork,mcp__plugin_deepwork_deepwork,Bash"
        for turn in turns:
            name = turn["tool"].replace("mcp__deepwork", "mcp__plugin_deepwork_deepwork") if plugin else turn["tool"]
            model.turns.put({**turn, "tool": name})
        try:
            desk.run("claude", "-p", "--allowedTools", tools, "--", "Do what the model says", url=model.url)
        finally:
            model.close()
        return model.requests

    return talk


@pytest.mark.parametrize("plugin", [False, True], ids=["connected", "as a plugin"])
def test_claude_hears_a_remark_after_a_tool_that_worked_and_a_pause_after_one_that_failed(talk, plugin):
    acts = {2: ("say", "Leave the migrations alone"), 3: ("pause", "the plan changes")}
    requests = talk(acts, [START, bash("echo hi", 1), bash("exit 3", 2), bash("echo hi", 3)], plugin=plugin)
    remark, pause = "| Leave the migrations alone", "A person has paused this session: the plan changes"
    assert [remark in request for request in requests[:4]] == [False, False, True, True]
    assert [pause in request for request in requests[:4]] == [False, False, False, True]
    assert requests[-1].count(remark) == 1
    assert requests[-1].count(pause) == 1
    assert "is not finished" not in requests[-1]  # a paused session is not reminded


def test_claude_is_told_once_of_the_pause_for_which_its_report_is_refused(talk):
    write = bash("mkdir -p tour && echo one > tour/notes.md", 1)
    arguments = {"step_id": "survey", "outputs": {"notes": "tour/notes.md"}}
    report = {"id": "toolu_report", "tool": "mcp__deepwork__finished_step", "input": arguments}
    requests = talk({3: ("pause", "the plan changes")}, [START, write, report, bash("echo hi", 2)])
    pause = "A person has paused this session: the plan changes"
    assert [request.count(pause) for request in requests[2:5]] == [0, 1, 1]


def test_gemini_hears_a_remark_and_a_pause_after_its_shell(node_clients, tmp_path):
    acts = {2: ("say", "Leave the migrations alone"), 3: ("pause", "the plan changes")}

    def before(number):
        if act := acts.pop(number, None):
            do(tmp_path / "project", *act)

    def shell(command):
        return {"name": "run_shell_command", "args": {"command": command}}

    start = {"name": "mcp_deepwork_start_workflow", "args": ARGUMENTS}
    model = ScriptedCodexModel([start, shell("echo hi"), shell("exit 3"), shell("echo hi")], before)
    try:
        printed = ClientDesk.make("gemini", tmp_path, node_clients, model.url).work()
    finally:
        model.close()
    requests = [json.dumps(request) for request in model.requests]
    remark, pause = "| Leave the migrations alone", "A person has paused this session: the plan changes"
    assert [remark in request for request in requests[:4]] == [False, False, True, True], printed
    assert [pause in request for request in requests[:4]] == [False, False, False, True]
    assert requests[-1].count(remark) == 1
    assert requests[-1].count(pause) == 1


class Team(ScriptedCodexModel):
    """A main agent that starts a sub-agent and is spoken to, while the sub-agent uses its shell."""

    def __init__(self, project):
        start = {"namespace": "mcp__deepwork", "name": "start_workflow", "arguments": ARGUMENTS}
        spawn = {"namespace": "multi_agent_v1", "name": "spawn_agent", "arguments": {"message": CHILD}}
        super().__init__([start, spawn, SHELL], lambda _: None)
        self.of_child = []
        self.of_main = []
        self._project = project
        self._child_is_done = threading.Event()

    def next_call(self, messages):
        text = json.dumps(messages)
        if CHILD not in text or "spawn_agent" in text:
            self.of_main.append(text)
            if len(self.of_main) == 3:
                self._child_is_done.wait(100)
            return super().next_call(messages)
        self.of_child.append(text)
        if len(self.of_child) == 1:
            do(self._project, "say", "Leave the migrations alone")
            return codex_call(SHELL)
        self._child_is_done.set()
        return None


def test_a_sub_agent_of_codex_does_not_take_away_what_its_main_agent_is_told(node_clients, tmp_path):
    model = Team(tmp_path / "project")
    try:
        printed = ClientDesk.make("codex", tmp_path, node_clients, model.url).work()
    finally:
        model.close()
    assert len(model.of_child) == 2, printed
    remark = "| Leave the migrations alone"
    assert [remark in request for request in model.of_child] == [False, False]
    assert [remark in request for request in model.of_main[:4]] == [False, False, False, True]


def test_codex_hears_a_remark_and_a_pause_after_its_shell(node_clients, tmp_path):
    acts = {2: ("say", "Leave the migrations alone"), 3: ("pause", "the plan changes")}

    def before(number):
        if act := acts.pop(number, None):
            do(tmp_path / "project", *act)

    def shell(command):
        return {"name": "exec_command", "arguments": {"cmd": command}}

    start = {"namespace": "mcp__deepwork", "name": "start_workflow", "arguments": ARGUMENTS}
    model = ScriptedCodexModel([start, shell("echo hi"), shell("exit 3"), shell("echo hi")], before)
    try:
        printed = ClientDesk.make("codex", tmp_path, node_clients, model.url).work()
    finally:
        model.close()
    requests = [json.dumps(request) for request in model.requests]
    remark, pause = "| Leave the migrations alone", "A person has paused this session: the plan changes"
    assert [remark in request for request in requests[:4]] == [False, False, True, True], printed
    assert [pause in request for request in requests[:4]] == [False, False, False, True]
    assert requests[-1].count(remark) == 1
    assert requests[-1].count(pause) == 1
    assert "hook: SessionStart Completed" in printed
    assert "hook: Stop Completed" in printed
    assert "Failed" not in printed
