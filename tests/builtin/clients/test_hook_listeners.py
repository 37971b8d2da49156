"""Who hears what by the hook as a tool: agents of a plugin, sub-agents, tools with other names, and a lack of time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest

from deepwork import hookimpl
from deepwork.api import AgentMail, AgentMessage

sys.path.insert(0, str(Path(__file__).parent))
from windows import TOOL, Window

pytestmark = pytest.mark.anyio


class Post:
    """A plugin with a message to the agent that a call names. It does not know yet whether that waits for a person."""

    def __init__(self):
        self.messages = [AgentMessage(id="m1", about="Message from somebody:", text="Read the plan")]
        self.knows = anyio.Event()

    @hookimpl
    def deepwork_agent_mail(self):
        async def unread(_agent_id):
            return self.messages

        async def mark_delivered(message_ids):
            self.messages = [message for message in self.messages if message.id not in message_ids]

        async def waits_for_person(_agent_id):
            await self.knows.wait()
            return False

        yield AgentMail(
            name="post",
            unread=unread,
            mark_delivered=mark_delivered,
            waits_for_person=waits_for_person,
            agent_of=lambda call: call.arguments.get("agent_id"),
        )


async def be(window, agent_id):
    """Name its agent, as a call of a plugin's tool does, and return what the next request has of us."""
    return await window.breathe(f"{TOOL}agent_get", arguments=json.dumps({"agent_id": agent_id}))


async def test_a_stop_that_runs_out_of_time_loses_no_message(project, monkeypatch):
    project.write_job()
    post = Post()
    async with project.agent(extra_plugins={"post": post}) as agent:
        window = Window(agent)
        await window.start()
        waiting, post.messages = post.messages, []
        await be(window, "ada")
        post.messages = waiting
        with monkeypatch.context() as patch:
            patch.setattr("deepwork.builtin.clients.hook_tool.SECONDS", 2)
            assert await window.hook("Stop") == {}
        post.knows.set()
        assert "| Read the plan" in await window.breathe()
        assert await window.breathe() == ""
        assert post.messages == []


async def test_both_are_told_once_of_a_file_although_one_of_them_becomes_an_agent_meanwhile(project):
    edit = {"tool": "Edit", "paths": ["x.py"]}
    post = Post()
    post.messages = []
    async with project.agent(extra_plugins={"post": post}) as agent:
        first, second = Window(agent), Window(agent)
        await be(second, "bob")
        await first.breathe(**edit)
        assert "another session of claude" in await second.breathe(**edit)
        assert "agent bob" in await first.breathe()
        await be(first, "ada")
        assert await first.breathe(**edit) == ""
        assert await second.breathe(**edit) == ""


async def test_what_a_sub_agent_has_changed_is_told_to_the_main_agent_of_its_client_session(project):
    edit = {"tool": "Edit", "paths": ["x.py"]}
    async with project.agent() as agent:
        first, second = Window(agent), Window(agent)
        await first.of("helper-1").breathe(**edit)
        assert "x.py was changed by" in await second.breathe(**edit)
        assert await first.of("helper-1").breathe() == ""
        assert "x.py was changed by" in await first.breathe()
        assert await first.breathe() == ""


async def test_tools_that_a_configuration_has_named_otherwise_join_a_session_too(project, person):
    project.write_job()
    project.write(".deepwork/config.yml", "tools: {prefix: {core: dw-}}")
    async with project.agent() as agent:
        window = Window(agent)
        _, reply = await window.call("dw-start_workflow", goal="a goal", job_name="demo", workflow_name="main")
        await person("say", reply["begin_step"]["session_id"], "Leave the migrations alone")
        assert "| Leave the migrations alone" in await window.breathe()


async def test_what_a_refusal_has_told_is_not_told_again(project, person):
    """Claude Code tells a refused call by an event of its own, with the refusal as its error."""
    project.write_job()
    async with project.agent() as agent:
        window = Window(agent)
        session_id = await window.start()
        await person("say", session_id, "Leave the migrations alone")
        news, refusal = await window.call("finished_step", session_id=session_id, step_id="nonsense", outputs={})
        assert "Leave the migrations alone" in refusal
        assert (news, await window.breathe()) == ("", "")


async def test_a_sub_agent_whose_context_is_compacted_is_told_nothing_of_what_others_have_open(project):
    project.write_job()
    async with project.agent() as agent:
        window = Window(agent)
        await window.start()
        assert await window.of("helper-1").hook("PreCompact", trigger="auto") == {}


async def test_a_prompt_to_a_sub_agent_of_codex_confirms_nothing_for_the_main_agent(project, person):
    """Codex tells both of one session; the name of the transcript ends with the id of the agent."""
    project.write_job()
    main, helper = "01a1f821-e5f6-7cc3-908c-8121a1f9e478", "01a1f822-af27-7a91-ab10-2ca30be502ef"
    async with project.agent() as agent:
        window = Window(agent, main)
        session_id = await window.start()
        await person("say", session_id, "Leave the migrations alone")
        assert "| Leave the migrations alone" in await window.breathe()
        await window.hook("UserPromptSubmit", transcript=str(project.root / f"rollout-{helper}.jsonl"))
        async with project.agent() as other_server:
            assert ", again] " in await window.on(other_server).breathe()
