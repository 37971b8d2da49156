"""Changes by other processes reach open pages, and pages that connect again miss none."""

from __future__ import annotations

import json
import signal

import anyio
import pytest
from websockets.exceptions import ConnectionClosed

from deepwork.testing.wire import PATIENCE
from deepwork_sql.testing import new_database

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["json", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def live_project(request, project, tmp_path):
    """A project whose sessions are in files, or with all else in a database of each engine."""
    if request.param == "json":
        project.options = ()
        yield project
        return
    with new_database(request.param, tmp_path, request) as url:
        project.env |= {"DEEPWORK_DATABASE_URL": url, "DEEPWORK_STATE_STORE": "sql"}
        project.options = ("--state-store", "sql")
        yield project


async def hello(socket):
    with anyio.fail_after(PATIENCE):
        message = json.loads(await socket.recv())
    assert message["type"] == "hello"
    return message


async def until_closed(socket):
    """Take messages for as long as there are any."""
    while True:
        await socket.recv()


async def test_a_page_is_told_what_an_agent_of_another_process_does(live_project, listen):
    with live_project.dashboard() as dash:
        async with dash.live() as socket, live_project.agent("core", *live_project.options) as agent:
            assert (await hello(socket))["resumed"] is False
            first_step = await agent.start("plain", "main")
            thing = f"session:{first_step['session_id']}"
            await listen(socket, thing, "sessions", "events")
            assert dash.get(f"api/sessions/{first_step['session_id']}")["step"] == "a"
            live_project.write("a.md")
            await agent.finish({"a.md": "a.md"}, session_id=first_step["session_id"])
            await listen(socket, thing)
            assert dash.get(f"api/sessions/{first_step['session_id']}")["step"] == "b"


async def test_plans_agents_and_tracked_work_are_told_too(live_project, listen):
    with live_project.dashboard() as dash:
        async with dash.live() as socket:
            await hello(socket)
            async with live_project.agent("orchestration") as agent:
                created = await agent.call("workflow_create", name="n", source_type="custom", source_content="c")
                await listen(socket, f"plan:{created['id']}", "plans", "events")
                worker = await agent.call("agent_register", name="w", runtime="codex")
                await listen(socket, f"agent:{worker['id']}", "agents")
                task = {"name": "ask", "description": "d", "sequence": 1, "required_capabilities": ["human"]}
                await agent.call(
                    "workflow_set_plan", id=created["id"], plan={"summary": "s", "approach": "a", "tasks": [task]}
                )
                await listen(socket, f"plan:{created['id']}", "inbox")
            async with live_project.agent("tracking") as agent:
                work = await agent.call("start_workflow", name="n", objective="o")
                await listen(socket, f"work:{work['workflow_id']}", "work", "events")


async def test_a_page_that_comes_back_is_told_what_it_has_missed(live_project, listen):
    with live_project.dashboard() as dash:
        async with live_project.agent("core", *live_project.options) as agent:
            async with dash.live() as socket:
                cursor = (await hello(socket))["cursor"]
                first = await agent.start("plain", "main")
                cursor = (await listen(socket, f"session:{first['session_id']}"))["cursor"]
            second = await agent.start("plain", "main")
            async with dash.live(cursor) as socket:
                assert (await hello(socket))["resumed"] is True
                message = await listen(socket, f"session:{second['session_id']}", "sessions")
                assert f"session:{first['session_id']}" not in message["things"]


async def test_over_a_restart_of_the_server_nothing_is_missed(live_project, tmp_path, tokens, listen):
    file = tokens("local locals-token-for-tests\n")
    with live_project.dashboard("--token-file", file) as dash:
        dash.token = "locals-token-for-tests"
        async with dash.live() as socket:
            cursor = (await hello(socket))["cursor"]
            assert dash.end() == 0
            with pytest.raises(ConnectionClosed) as closed:
                await until_closed(socket)
            assert closed.value.rcvd.code == 1012
    with live_project.dashboard("--token-file", file) as dash:
        dash.token = "locals-token-for-tests"
        async with dash.live(cursor) as socket:
            assert (await hello(socket))["resumed"] is True
        async with live_project.agent("core", *live_project.options) as agent:
            first_step = await agent.start("plain", "main")
        dash.end()
    with live_project.dashboard("--token-file", file) as dash:
        dash.token = "locals-token-for-tests"
        async with dash.live(cursor) as socket:
            # Of files nothing tells which of them it was: the page fetches anew what it shows.
            if (await hello(socket))["resumed"]:
                await listen(socket, f"session:{first_step['session_id']}", "sessions")
            assert [row["id"] for row in dash.get("api/sessions")["items"]] == [first_step["session_id"]]


@pytest.mark.parametrize("cursor", ["x", "a~b~c~d", "~~~", "a~1~0-1~b~c", "%ff", "a~99999999999999999~~"])
async def test_a_cursor_that_is_none_is_answered_with_a_new_one(project, listen, cursor):
    with project.dashboard() as dash:
        async with dash.live(cursor) as socket:
            assert (await hello(socket))["resumed"] is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
async def test_a_dashboard_ends_in_order_with_pages_open(project, number):
    with project.dashboard() as dash:
        async with dash.live() as first, dash.live() as second:
            await hello(first)
            await hello(second)
            assert dash.end(number) == 0
        assert "Traceback" not in dash.process.stderr.read()


async def test_pages_are_told_of_each_change_once(project, listen):
    with project.dashboard() as dash:
        async with dash.live() as first, dash.live() as second, project.agent("core") as agent:
            assert [(await hello(socket))["resumed"] for socket in (first, second)] == [False, False]
            first_step = await agent.start("plain", "main")
            heard = [(await listen(socket, "sessions"))["things"] for socket in (first, second)]
    # The first thing that a page is told is that its inbox was looked at.
    news = [[thing for thing in things if thing != "inbox"] for things in heard]
    assert news == [[f"session:{first_step['session_id']}", "sessions", "events"]] * 2
