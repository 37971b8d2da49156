"""`create_server` and what holds its parts together."""

from __future__ import annotations

import asyncio
import gc

import anyio
import pytest
from fastmcp import Client, FastMCP

from deepwork import __version__
from deepwork.loading.manager import PluginManager
from deepwork.server import create_server

pytestmark = pytest.mark.anyio


DEMO = {"goal": "g", "job_name": "demo", "workflow_name": "main"}


async def test_a_server_works_in_process_at_once(project):
    project.write_job()
    project.write("a.md")
    server = project.server()
    assert isinstance(server, FastMCP)
    begin = await server.call_tool("start_workflow", DEMO)
    assert begin.structured_content["begin_step"]["step_id"] == "a"
    answer = await server.call_tool("finished_step", {"outputs": {"a.md": "a.md"}})
    assert answer.structured_content["status"] == "next_step"


async def test_it_has_its_own_name_and_version(project):
    server = project.server()
    assert (server.name, server.version) == ("deepwork", __version__)


async def test_several_clients_in_memory_share_one_stack(project):
    project.write_job()
    project.write("a.md")
    server = project.server()
    async with project.agent(server) as first, project.agent(server, mode="legacy") as second:
        await first.start()
        assert [entry["step"] for entry in (await second.call("start_workflow", **DEMO))["stack"]] == ["a", "a"]
        answer = await first.finish({"a.md": "a.md"})
        assert [entry["step"] for entry in answer["stack"]] == ["a", "b"]


async def test_two_servers_share_no_stack(project):
    project.write_job()
    async with project.agent() as first, project.agent() as second:
        await first.start()
        assert len((await second.call("start_workflow", **DEMO))["stack"]) == 1


async def test_a_client_that_leaves_takes_nothing_from_those_that_stay(project, install):
    install("good")
    project.write_job()
    project.write("a.md")
    server = project.server(state_store="acme", tools=["core"])
    async with project.agent(server) as stays:
        async with project.agent(server) as leaves:
            await leaves.start()
        assert (project.root / "acme-store.log").read_text() == "opened\n"
        assert (await stays.finish({"a.md": "a.md"}))["status"] == "next_step"
    assert (project.root / "acme-store.log").read_text() == "opened\nclosed\n"


async def test_a_server_that_everybody_has_left_can_be_used_again(project):
    project.write_job()
    project.write("a.md")
    server = project.server()
    async with project.agent(server) as agent:
        await agent.start()
    async with project.agent(server) as agent:
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"


def test_a_server_can_be_used_in_two_event_loops_one_after_the_other(project):
    project.write_job()
    project.write("a.md")
    server = project.server()

    async def start():
        async with Client(server) as client:
            await client.call_tool("start_workflow", DEMO)
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(client.call_tool, "get_workflows")

    async def finish():
        async with Client(server) as client:
            return (await client.call_tool("finished_step", {"outputs": {"a.md": "a.md"}})).structured_content

    asyncio.run(start())
    assert asyncio.run(finish())["status"] == "next_step"


async def test_calls_at_once_do_not_get_in_each_others_way(project):
    project.write_job()
    async with project.agent() as agent, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(lambda: agent.call("start_workflow", **DEMO))
            tasks.start_soon(lambda: agent.call("get_workflows"))
    sessions = [name for name in project.state.iterdir() if name.name.startswith("session_")]
    assert len(sessions) == 10


async def test_plugins_that_are_handed_in_are_used_as_they_are(project, install):
    install("good")
    with_acme = PluginManager()
    without = PluginManager(blocked=["acme"])
    assert "acme_greet" in [tool.name for tool in await create_server(project.root, plugins=with_acme).list_tools()]
    assert "acme_greet" not in [tool.name for tool in await create_server(project.root, plugins=without).list_tools()]


def test_a_server_that_nobody_holds_any_more_leaves_no_open_file(project):
    project.write_job()

    async def use():
        async with project.agent() as agent:
            await agent.start()

    anyio.run(use)
    gc.collect()  # an open descriptor would be a ResourceWarning, which is an error here
