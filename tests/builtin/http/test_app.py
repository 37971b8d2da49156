"""`deepwork serve --transport http` and `sse` on this machine's own address."""

from __future__ import annotations

import os
import signal
import socket

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError

from deepwork.testing import Agent

pytestmark = pytest.mark.anyio

TRANSPORTS = {"http": StreamableHttpTransport, "sse": SSETransport}


@pytest.fixture
def connect():
    """Connect to an address."""
    return lambda transport, url, mode: Client(TRANSPORTS[transport](url), mode=mode)


@pytest.mark.parametrize(("transport", "mode"), [("http", "auto"), ("http", "legacy"), ("sse", "legacy")])
async def test_an_agent_works_through_a_workflow(project, listen, connect, transport, mode):
    project.write_job()
    for name in "ab":
        project.write(f"{name}.md")
    _, url = listen(transport)
    assert url.endswith({"http": "/mcp", "sse": "/sse"}[transport])
    async with connect(transport, url, mode) as client:
        agent = Agent(client)
        session_id = (await agent.start())["session_id"]
        answer = await agent.finish({"a.md": "a.md"}, session_id=session_id)
        assert answer["begin_step"]["step_id"] == "b"
        answer = await agent.finish({"b.md": "b.md"}, session_id=session_id)
        assert answer["status"] == "workflow_complete"


async def test_two_sessions_of_the_transport_have_stacks_of_their_own(project, listen, connect):
    project.write_job()
    _, url = listen("http")
    async with connect("http", url, "legacy") as first, connect("http", url, "legacy") as second:
        await Agent(first).start()
        reply = await Agent(second).call("start_workflow", goal="g", job_name="demo", workflow_name="main")
        assert len(reply["stack"]) == 1
        nested = await Agent(first).call("start_workflow", goal="g", job_name="demo", workflow_name="main")
        assert len(nested["stack"]) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_it_ends_cleanly_and_at_once(project, listen, transport, number):
    process, _ = listen(transport)
    process.send_signal(number)
    assert process.wait(100) == 0
    assert process.stderr.read() == ""
    assert process.stdout.read() == ""


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_open_client_with_a_call_in_flight_does_not_hold_up_the_end(
    project, install, listen, connect, transport, tmp_path
):
    install("good")
    process, url = listen(transport, "--state-store", "acme")
    arrived = tmp_path / "arrived"
    os.mkfifo(arrived)

    def end_when_it_has_arrived():
        arrived.read_text()
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        return process.wait(100)

    async def wait(client):
        with pytest.raises(MCPError):
            await client.call_tool("acme_wait", {"path": str(arrived)})

    async with connect(transport, url, "legacy") as client, anyio.create_task_group() as tasks:
        await client.call_tool("start_workflow", {"goal": "g", "job_name": "acme_job", "workflow_name": "main"})
        tasks.start_soon(wait, client)
        assert await anyio.to_thread.run_sync(end_when_it_has_arrived) == 0
    assert "Traceback" not in process.stderr.read()
    assert (project.root / "acme-store.log").read_text() == "opened\nclosed\n"


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_port_that_is_taken_is_a_clear_error(start, transport):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        process = start("--transport", transport, "--port", str(port))
        assert process.wait(100) == 1
    assert process.stderr.read() == (
        f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
        "Hint: Choose another address with --host and --port; port 0 takes a free one.\n"
    )
