"""Over HTTP a stack belongs to a session that the transport itself issued, and to nothing that a client sends."""

import re
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport

from deepwork.testing import Agent

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["http"])
def url(demo, request):
    """Serve the project on a free port: `http`, `sse`, or `stateless`, which is http without sessions."""
    command = [sys.executable, "-m", "deepwork", "serve", "--path", str(demo.root), "--port", "0"]
    stateless = request.param == "stateless"
    server = subprocess.Popen(
        [*command, "--transport", *(["http", "--stateless"] if stateless else [request.param])],
        stderr=subprocess.PIPE,
        text=True,
    )
    address = next(match[0] for line in server.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+/\w+", line)))
    yield address
    server.terminate()
    server.communicate()


@asynccontextmanager
async def agent_at(url, *, mode, headers=None):
    transport = SSETransport(url) if url.endswith("/sse") else StreamableHttpTransport(url, headers=headers)
    async with Client(transport, mode=mode) as client:
        yield Agent(client)


async def stacks_belong_to_clients(url):
    async with agent_at(url, mode="legacy") as first, agent_at(url, mode="legacy") as second:
        begin = await first.start()
        assert "No active workflow session" in await second.refused("finished_step", outputs={"a.md": "a.md"})
        reply = await second.call("start_workflow", goal="g", job_name="demo", workflow_name="long")
        assert reply["stack"] == [{"workflow": "demo/long", "step": "a"}]
        reply = await first.finish({"a.md": "a.md"})
        assert reply["begin_step"]["session_id"] == begin["session_id"]
        assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]


async def test_in_the_handshake_era_each_http_session_has_a_stack_of_its_own(url):
    await stacks_belong_to_clients(url)


@pytest.mark.parametrize("url", ["sse"], indirect=True)
async def test_each_sse_connection_has_a_stack_of_its_own(url):
    await stacks_belong_to_clients(url)


async def test_on_2026_07_28_every_call_has_an_empty_stack_and_names_its_session(url):
    async with agent_at(url, mode="auto") as agent:
        begin = await agent.start()
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
        assert "No active workflow session" in text
        assert begin["session_id"] not in text
        reply = await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
        assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]


async def test_on_2026_07_28_a_nested_workflow_names_its_parent(url):
    async with agent_at(url, mode="auto") as agent:
        parent = await agent.start()
        reply = await agent.call(
            "start_workflow",
            goal="g",
            job_name="demo",
            workflow_name="single",
            parent_session_id=parent["session_id"],
        )
        assert reply["stack"] == [{"workflow": "demo/main", "step": "a"}, {"workflow": "demo/single", "step": "a"}]
        child = reply["begin_step"]["session_id"]
        reply = await agent.finish({"a.md": "a.md"}, session_id=child, step_id="a")
        assert reply["stack"] == [{"workflow": "demo/main", "step": "a"}]


async def test_on_2026_07_28_a_session_id_header_is_ignored(url):
    headers = {"Mcp-Session-Id": "mine"}
    async with agent_at(url, mode="auto", headers=headers) as agent:
        await agent.start()
        assert "No active workflow session" in await agent.refused("finished_step", outputs={"a.md": "a.md"})


async def test_on_2026_07_28_the_header_of_somebody_elses_session_opens_nothing(url):
    async with agent_at(url, mode="legacy") as victim:
        await victim.start()
        issued = victim.client.transport.get_session_id()
        assert issued
        async with agent_at(url, mode="auto", headers={"Mcp-Session-Id": issued}) as thief:
            assert "No active workflow session" in await thief.refused("finished_step", outputs={"a.md": "a.md"})
            await thief.start(workflow="long")
        reply = await victim.finish({"a.md": "a.md"})
        assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]


@pytest.mark.parametrize("url", ["stateless"], indirect=True)
async def test_without_sessions_of_the_transport_a_session_id_header_is_ignored_too(url):
    async with agent_at(url, mode="legacy", headers={"Mcp-Session-Id": "mine"}) as agent:
        begin = await agent.start()
        assert "No active workflow session" in await agent.refused("finished_step", outputs={"a.md": "a.md"})
        reply = await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
        assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]
