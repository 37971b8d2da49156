"""The plugins that the page on hooks shows, loaded and used."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from types import ModuleType

import anyio
import click
import pytest
from fastmcp import Client

from deepwork import __version__, api
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.ports.inbox import Answer
from deepwork.project.project import Project
from deepwork.testing import Agent, review, step

pytestmark = pytest.mark.anyio


@pytest.fixture
def plugins(reference, tmp_path, monkeypatch):
    """Make the plugin manager of an installation in which the example of a hook is installed as `acme`."""

    def install(hook, blocked=()):
        block = next(block for block in reference("hooks").blocks("example") if block.about == hook)
        module = ModuleType("deepwork_acme.plugin")
        module.__file__ = str(tmp_path / "deepwork_acme" / "plugin.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(block.text, module.__file__, "exec"), vars(module))
        core = [candidate for candidate in installed() if candidate.builtin]
        candidates = [*core, Candidate("acme", "deepwork-acme", "1.0", lambda: module)]
        return PluginManager(candidates=candidates, blocked=blocked)

    return install


async def test_the_job_source_offers_its_jobs(project, plugins, tmp_path):
    project.write_job("onboarding", folder=tmp_path / "deepwork_acme" / "jobs")
    async with project.agent(plugins=plugins("deepwork_job_sources")) as agent:
        names = [job["name"] for job in (await agent.call("get_workflows"))["jobs"]]
        assert "onboarding" in names
        assert (await agent.start("onboarding"))["step_id"] == "a"


async def test_the_state_store_keeps_sessions_and_refuses_stale_ones(project, plugins):
    project.write_job()
    project.write("a.md")
    options = {"plugins": plugins("deepwork_state_stores"), "state_store": "acme"}
    async with project.agent(**options) as agent:
        session = (await agent.start())["session_id"]
    assert [path.name for path in project.state.glob("*.db")] == ["sessions.db"]
    assert not list(project.state.glob("session_*"))
    store = Project(project.root, plugins=options["plugins"]).store("acme")
    async with project.agent(**options) as agent, store.open(api.Workspace(project.root)) as opened:
        assert session in await agent.refused("finished_step", outputs={})
        session_of_store = await opened.load(session)
        reply = await agent.finish({"a.md": "a.md"}, session_id=session, step_id="a")
        assert reply["begin_step"]["step_id"] == "b"
        with pytest.raises(api.StaleSession):
            await opened.save(session_of_store, expected=session_of_store.revision)
        assert [summary.step_id for summary in await opened.find(status="active")] == ["b"]


async def test_exactly_one_of_many_saves_at_once_is_stored(project, plugins):
    project.write_job()
    manager = plugins("deepwork_state_stores")
    async with project.agent(plugins=manager, state_store="acme") as agent:
        session_id = (await agent.start())["session_id"]
    won = []
    store = Project(project.root, plugins=manager).store("acme").open(api.Workspace(project.root))
    session = await store.load(session_id)

    async def save():
        with suppress(api.StaleSession):
            won.append(await store.save(session, expected=session.revision))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(save)
    assert won == [session.revision + 1]


async def test_the_review_runner_is_asked(project, plugins):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md", "line\n" * 61)
    async with project.agent(plugins=plugins("deepwork_review_runners"), external_runner="short") as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
        assert (reply["status"], reply["feedback"]) == ("needs_work", "Longer than 60 lines: a.md")
        project.write("a.md", "line\n" * 60)
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"


async def test_the_tool_set_is_served_beside_that_of_the_core(project, plugins):
    server = project.server(plugins=plugins("deepwork_tool_sets"))
    async with Client(server) as client:
        agent = Agent(client)
        assert await agent.call("acme_get_ticket", number="7") == {"title": "The door sticks", "opened_by": "local"}
        assert await agent.refused("acme_get_ticket", number="8") == "no ticket '8'; there are: 7"
        assert (await client.read_resource("acme://tickets/7"))[0].text == "The door sticks"
        prompt = await client.get_prompt("triage", {"number": "7"})
        assert "acme_get_ticket" in prompt.messages[0].content.text
        assert "Tickets: acme_get_ticket." in server.instructions


async def test_a_set_that_is_served_alone_has_its_own_names(project, plugins):
    server = project.server(plugins=plugins("deepwork_tool_sets"), tools=["tickets"])
    async with Client(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["get_ticket"]


def test_the_command_prints_its_tickets(plugins, capsys):
    offered = plugins("deepwork_commands").ask("deepwork_commands", click.Command).items
    [command] = [command for command in offered if not command.by.builtin]
    assert (command.item.name, str(command.by)) == ("tickets", "deepwork-acme 1.0 (plugin 'acme')")
    command.item.main([], standalone_mode=False)
    assert capsys.readouterr().out == "7  The door sticks\n"


def test_the_check_reads_its_settings(project, plugins):
    manager = plugins("deepwork_checks")

    def findings():
        checks = Project(project.root, plugins=manager).checks.items
        [check] = [check for check in checks if not check.by.builtin]
        return [(finding.level, finding.text) for finding in check.item.run()]

    assert findings() == [("warning", "no url is set")]
    project.write(".deepwork/config.yml", "plugins: {settings: {acme: {url: 'https://tickets.example'}}}")
    assert findings() == [("warning", "no url is set")]
    project.trust(plugins=manager)
    assert findings() == [("ok", "tickets come from https://tickets.example")]


def test_what_the_page_says_of_versions_holds(reference):
    assert f"deepwork>={__version__}" in next(reference("hooks").blocks("sketch")).text


async def test_the_agent_mail_is_handed_over_once(project, plugins):
    project.write("acme-mail.txt", "Mind the gap.")
    installation = plugins("deepwork_agent_mail")
    [provided] = Project(project.root, plugins=installation).agent_mail.demand()
    [message] = await provided.item.unread("agent_1")
    assert message.text.endswith("Mind the gap.")
    await provided.item.mark_delivered([message.id])
    assert await provided.item.unread("agent_1") == []


async def test_the_question_in_the_inbox_is_answered(project, plugins):
    project.write("acme-question.txt", "Which colour?")
    inbox = Project(project.root, plugins=plugins("deepwork_inbox")).inbox
    [item] = (await inbox.items(api.Answerer())).items
    assert (item.source, item.what, [action.name for action in item.actions]) == ("acme", "Which colour?", ["reply"])
    assert (
        await inbox.answer(item.id, Answer("reply", "Green"), api.Answerer(terminal="/dev/pts/1"))
        == "The agent finds the reply in acme-reply.txt"
    )
    assert (project.root / "acme-reply.txt").read_text() == "Green\n"
    assert (await inbox.items(api.Answerer())).items == ()


def test_the_transport_serves_on_its_socket(project, reference, tmp_path):
    """Started as users start it, from a folder of plugins, with the option that the transport adds."""
    block = next(block for block in reference("hooks").blocks("example") if block.about == "deepwork_transports")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "acme.py").write_text(block.text)
    address = str(tmp_path / "s")
    command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root)]
    arguments = ["--plugins-dir", str(tmp_path / "plugins"), "--transport", "unix", "--socket", address]
    with subprocess.Popen(
        [*command, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert any("running on unix socket" in line for line in server.stderr)
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(address)
                line.sendall(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert line.makefile("rb").readline().startswith(b"HTTP/1.1 406")
        finally:
            server.terminate()


async def test_the_agent_says_what_its_program_prints(project, plugins, tmp_path, monkeypatch):
    [spec] = [chosen.item for chosen in Project(project.root, plugins=plugins("deepwork_agents")).agents.items]
    agent = spec.create()
    assert "acme-coder" in await agent.available()
    program = tmp_path / "bin" / "acme-coder"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert await agent.available() is None
    task = api.AgentTask(
        session_id="s", prompt="Go on", project_root=project.root, server=("x",), hook=("x",), environment=os.environ
    )
    assert [event async for event in agent.start(task)] == [api.Said("Go on"), api.Ended(0)]


def test_the_step_of_init_takes_its_option_and_writes_its_file(project, reference, tmp_path):
    block = next(block for block in reference("hooks").blocks("example") if block.about == "deepwork_init_steps")
    (tmp_path / "acme.py").write_text(block.text)
    command = [sys.executable, "-m", "deepwork", "init", "--path", str(project.root), "--team", "the maintainers"]
    environment = {**os.environ, "DEEPWORK_PLUGINS_DIR": str(tmp_path)}
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=environment)
    assert (project.root / "TEAM.md").read_text() == "Questions go to the maintainers.\n"


async def test_another_prover_tries_gates_in_the_place_of_the_feature(reviewed, plugins, user_config, history):
    manager = plugins("deepwork_provers", blocked=["proofs"])
    for script, result in [("test -e a.md", "proved"), ("true", "cannot_fail")]:
        user_config(commands={"tests": {"run": ["sh", "-c", script], "verdict": "exit_code"}})
        async with reviewed.agent(plugins=manager, external_runner="tests") as agent:
            session = (await agent.start())["session_id"]
            notices = (await agent.finish({"a.md": "a.md"})).get("notices")
        assert history("verdict", session)[0]["proof"]["result"] == result
        assert notices == (None if result == "proved" else ["it also passed an empty folder"])


async def test_claims_are_told_and_given_away(project, plugins):
    [keeper] = [chosen.item for chosen in Project(project.root, plugins=plugins("deepwork_claims")).claims.items]
    assert (keeper.name, keeper.seconds, await keeper.held("s1")) == ("acme", 60, [])
    await keeper.renew("s1")
    await keeper.release("s1", "a limit")
