"""Prompts and their completions, as a client that shows them as commands sees them."""

from __future__ import annotations

import pytest
from fastmcp import Client, FastMCP
from mcp import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from deepwork.api import PromptSpec, ToolCall
from deepwork.errors import ToolError
from deepwork.server.completions import add_completions
from deepwork.server.middleware import CallMiddleware
from deepwork.server.tools import add_prompt

pytestmark = pytest.mark.anyio


def text(result):
    return result.messages[0].content.text


async def completed(agent, reference, name, typed, context=None):
    arguments = {"name": name, "value": typed}
    return (await agent.client.complete(reference, arguments, context_arguments=context)).values


async def test_a_job_is_started_by_its_name(project):
    project.write_job("notes")
    async with project.agent() as agent:
        assert [prompt.name for prompt in await agent.client.list_prompts()] == ["resume", "start"]
        words = text(await agent.client.get_prompt("start", {"job": "notes", "workflow": "main", "goal": "tidy"}))
        assert "job_name='notes', workflow_name='main'" in words
        assert "The goal: tidy" in words
        assert "get_workflows" in text(await agent.client.get_prompt("start", {"job": "notes"}))


async def test_a_session_is_resumed_with_everything_that_its_step_needs(project):
    project.write_job("notes")
    async with project.agent() as agent:
        begin = await agent.start("notes")
        words = text(await agent.client.get_prompt("resume", {"session_id": begin["session_id"]}))
        assert f"# Resume notes/main, session {begin['session_id']}" in words
        with pytest.raises(MCPError, match="Session 'nope' not found"):
            await agent.client.get_prompt("resume", {"session_id": "nope"})


async def test_names_of_jobs_workflows_and_sessions_are_completed(project):
    project.write_job("notes", workflows={"short": ["a"], "long": ["a", "b"]})
    project.write_job("other", workflows={"main": ["a"]})
    start = PromptReference(name="start")
    async with project.agent() as agent:
        assert await completed(agent, start, "job", "no") == ["notes"]
        assert await completed(agent, start, "job", "OTES") == ["notes"]
        assert await completed(agent, start, "workflow", "", {"job": "notes"}) == ["long", "short"]
        assert await completed(agent, start, "goal", "x") == []
        begin = await agent.start("notes", "short")
        session_id = begin["session_id"]
        assert await completed(agent, PromptReference(name="resume"), "session_id", session_id[:4]) == [session_id]
        template = ResourceTemplateReference(uri="deepwork://sessions/{session_id}")
        assert await completed(agent, template, "session_id", "") == [session_id]
        assert await completed(agent, PromptReference(name="nope"), "job", "") == []


async def test_a_completion_that_fails_gives_no_values_and_the_log_says_why(project, caplog):
    def fail(_call, _typed, _others):
        raise ToolError("not today")

    server = FastMCP("sample")
    middleware = CallMiddleware(None)
    server.add_middleware(middleware)
    spec = PromptSpec("greet", lambda name: name, "Greet", complete={"name": fail})
    add_completions(server, [spec], [], middleware)
    async with Client(server) as client:
        answer = await client.complete(PromptReference(name="greet"), {"name": "name", "value": "a"})
    assert answer.values == []
    assert [record.message for record in caplog.records] == ["no values for 'name' of greet: not today"]
    assert "Traceback" not in caplog.text


async def test_a_prompt_may_know_its_call_and_its_errors_are_told():
    async def greet(call: ToolCall, name: str) -> str:
        if name == "nobody":
            raise ToolError("nobody is there", hint="Name somebody.")
        return f"{call.principal} greets {name}"

    server = FastMCP("sample")
    middleware = CallMiddleware(None)
    server.add_middleware(middleware)
    add_prompt(server, PromptSpec("greet", greet, "Greet"), middleware)
    async with Client(server) as client:
        [prompt] = await client.list_prompts()
        assert [argument.name for argument in prompt.arguments] == ["name"]
        assert text(await client.get_prompt("greet", {"name": "Ada"})) == "local greets Ada"
        with pytest.raises(MCPError, match="nobody is there"):
            await client.get_prompt("greet", {"name": "nobody"})
