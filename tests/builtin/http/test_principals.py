"""Whose sessions are whose: a principal sees its own, and those of others are as if they were not there."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError

from deepwork.testing import Agent

pytestmark = [pytest.mark.anyio, pytest.mark.req("T4")]

UNKNOWN = "0123456789abcdef0123456789abcdef"
UNLISTED = (
    "Without a token no sessions are listed here. If you have a session_id, name it: "
    'finished_step(session_id=..., step_id="?", outputs={}) answers where it is. start_workflow begins a new one.'
)
# How a server is started, and the era in which its clients speak.
WAYS = {
    "http of the handshake era": ("http", "legacy"),
    "http of 2026-07-28": ("http", "auto"),
    "sse": ("sse", "legacy"),
    "stateless http of the handshake era": ("http", "legacy", "--stateless"),
    "stateless http of 2026-07-28": ("http", "auto", "--stateless"),
}


@pytest.fixture(params=WAYS)
def serve(listen, project, request):
    """Serve a project over HTTP in each of the ways, and return a function that connects a principal."""
    project.write_job(workflows={"main": ["a", "b"], "other": ["b"]})
    project.write("a.md")
    project.write("b.md")
    transport, mode, *options = WAYS[request.param]

    def serve(*more):
        process, url = listen(transport, *options, *more)

        @asynccontextmanager
        async def connect(name=None):
            headers = {"Authorization": f"Bearer {name}s-token-for-tests"} if name else {}
            way = SSETransport if transport == "sse" else StreamableHttpTransport
            async with Client(way(url, headers=headers), mode=mode) as client:
                yield Agent(client)

        connect.process, connect.has_stacks = process, mode == "legacy" and not options
        return connect

    return serve


def principal_of(project, session_id):
    return json.loads((project.state / f"session_{session_id}.json").read_text())["principal"]


async def answers_about(agent, session_id):
    """Ask everything that takes a session for one, and give the texts of the errors, without its id and times."""
    parent = {"goal": "g", "job_name": "demo", "workflow_name": "other", "parent_session_id": session_id}
    texts = [
        await agent.refused("finished_step", outputs={"a.md": "a.md"}, session_id=session_id),
        await agent.refused("finished_step", outputs={"a.md": "a.md"}, session_id=session_id, step_id="a"),
        await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="?"),
        await agent.refused("abort_workflow", explanation="not mine", session_id=session_id),
        await agent.refused("start_workflow", **parent),
    ]
    with pytest.raises(MCPError) as caught:
        await agent.client.read_resource(f"deepwork://sessions/{session_id}")
    return [re.sub(r"\d+ s ago", "now", text.replace(session_id, "ID")) for text in (*texts, str(caught.value))]


async def test_sessions_of_other_principals_are_unknown(serve, token_file, project):
    async with project.stdio_agent() as agent:
        local = await agent.start()
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice, connect("bob") as bob:
        hers = await alice.start()
        nested = await alice.start(workflow="other", parent_session_id=hers["session_id"])
        his = await bob.start()
        owners = {"alice": [hers, nested], "bob": [his], "local": [local]}
        files = {}
        for name, sessions in owners.items():
            for session in sessions:
                assert principal_of(project, session["session_id"]) == name
                files[name, session["session_id"]] = (
                    project.state / f"session_{session['session_id']}.json"
                ).read_bytes()
        for name in ("alice", "bob"):
            async with connect(name) as agent:
                unknown = await answers_about(agent, UNKNOWN)
                assert all("'ID' not found" in text for text in unknown)
                for owner, session_id in files:
                    if owner != name:
                        assert await answers_about(agent, session_id) == unknown
                        assert not [text for text in unknown if session_id in text]
        for (_, session_id), before in files.items():
            assert (project.state / f"session_{session_id}.json").read_bytes() == before


async def test_local_does_not_know_the_sessions_of_principals(serve, listen, token_file, project):
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice:
        hers = (await alice.start())["session_id"]
    async with project.stdio_agent() as local:
        assert await answers_about(local, hers) == await answers_about(local, UNKNOWN)
        assert hers not in await local.refused("finished_step", outputs={})
    connect = serve()
    async with connect() as nobody:
        assert await answers_about(nobody, hers) == await answers_about(nobody, UNKNOWN)
    assert principal_of(project, hers) == "alice"


async def test_the_list_in_errors_is_of_ones_own_sessions(serve, token_file, project):
    async with project.stdio_agent() as local:
        locals_own = (await local.start())["session_id"]
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice, connect("bob") as bob:
        hers = (await alice.start())["session_id"]
        his = (await bob.start())["session_id"]
    for name, own, foreign in (("alice", hers, (his, locals_own)), ("bob", his, (hers, locals_own))):
        async with connect(name) as agent:
            for text in (
                await agent.refused("finished_step", outputs={}),
                await agent.refused("finished_step", outputs={}, session_id=UNKNOWN),
                await agent.refused("abort_workflow", explanation="e"),
            ):
                assert "Active sessions of this project:" in text
                assert f"- {own}  demo/main, step 'a'" in text
                assert not [session_id for session_id in foreign if session_id in text]
    async with project.stdio_agent() as local:
        text = await local.refused("finished_step", outputs={})
        assert locals_own in text
        assert hers not in text
        assert his not in text


async def test_a_session_that_ended_is_told_to_its_principal_alone(serve, token_file, project):
    """The outputs of a call that names neither session nor step are compared with those of one's own last session."""
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice:
        begin = await alice.start(workflow="other")
        await alice.finish({"b.md": "b.md"}, session_id=begin["session_id"], step_id="b")
    texts = {}
    for name in ("alice", "bob"):
        async with connect(name) as agent:
            texts[name] = await agent.refused("finished_step", outputs={"b.md": "b.md"})
    assert "already completed" in texts["alice"]
    assert "already completed" not in texts["bob"]


async def test_a_principal_goes_on_with_its_nested_stack_on_another_connection(serve, token_file, project):
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice:
        parent = (await alice.start())["session_id"]
        child = (await alice.start(workflow="other", parent_session_id=parent))["session_id"]
    both = [{"workflow": "demo/main", "step": "a"}, {"workflow": "demo/other", "step": "b"}]
    async with connect("alice") as alice:
        reply = await alice.call(
            "start_workflow", goal="g", job_name="demo", workflow_name="other", parent_session_id=child
        )
        assert reply["stack"] == [*both, both[1]]
        grandchild = reply["begin_step"]["session_id"]
        assert principal_of(project, grandchild) == "alice"
        resource = await alice.client.read_resource(f"deepwork://sessions/{child}")
        assert "# Resume demo/other" in resource[0].text
        ended = await alice.call("abort_workflow", explanation="enough", session_id=grandchild)
        assert ended["stack"] == both
        reply = await alice.finish({"b.md": "b.md"}, session_id=child, step_id="b")
        assert (reply["status"], reply["stack"]) == ("workflow_complete", both[:1])
        reply = await alice.finish({"a.md": "a.md"}, session_id=parent, step_id="a")
        assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]


async def test_a_parent_of_somebody_else_is_not_put_on_the_stack(serve, token_file, project):
    """Not even if it stands in the file of one's own session."""
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice, connect("bob") as bob:
        hers = (await alice.start())["session_id"]
        his = (await bob.start())["session_id"]
    file = project.state / f"session_{his}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "parents": [hers]}))
    async with connect("bob") as bob:
        reply = await bob.finish({"a.md": "a.md"}, session_id=his, step_id="a")
        assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]
        ended = await bob.call("abort_workflow", explanation="enough", session_id=his)
        assert ended["stack"] == []
        assert ended["resumed_workflow"] is None


async def test_two_tokens_of_one_name_are_one_principal(serve, token_file, project):
    connect = serve("--token-file", token_file("alice alices-token-for-tests\nalice laptops-token-for-tests\n"))
    async with connect("alice") as alice:
        begin = await alice.start()
    async with connect("laptop") as alice:
        reply = await alice.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
        assert reply["begin_step"]["step_id"] == "b"


async def test_without_tokens_http_goes_on_with_a_local_session_by_its_id_and_gets_no_list(serve, project):
    async with project.stdio_agent() as local:
        session_id = (await local.start())["session_id"]
    connect = serve()
    async with connect() as nobody:
        for text in (
            await nobody.refused("finished_step", outputs={}),
            await nobody.refused("finished_step", outputs={}, session_id=UNKNOWN),
            await nobody.refused("abort_workflow", explanation="e"),
        ):
            assert session_id not in text
            assert UNLISTED in text
        resource = await nobody.client.read_resource(f"deepwork://sessions/{session_id}")
        assert "# Resume demo/main" in resource[0].text
        reply = await nobody.finish({"a.md": "a.md"}, session_id=session_id, step_id="a")
        assert reply["begin_step"]["step_id"] == "b"
        own = (await nobody.start())["session_id"]
        assert principal_of(project, own) == "local"
    async with project.stdio_agent() as local:
        text = await local.refused("finished_step", outputs={})
        assert session_id in text
        assert own in text


async def test_without_tokens_http_is_not_told_which_session_has_ended(serve, project):
    async with project.stdio_agent() as local:
        await local.start(workflow="other")
        await local.finish({"b.md": "b.md"})
    async with serve()() as nobody:
        assert "already completed" not in await nobody.refused("finished_step", outputs={"b.md": "b.md"})
    async with project.stdio_agent() as local:
        assert "already completed" in await local.refused("finished_step", outputs={"b.md": "b.md"})


async def test_damaged_files_are_told_to_stdio_alone(serve, token_file, project):
    """Nobody knows whose they were."""
    async with project.stdio_agent() as local:
        torn = (await local.start())["session_id"]
        file = project.state / f"session_{torn}.json"
        file.write_bytes(file.read_bytes()[:100])
        await local.refused("finished_step", outputs={})
    for options, name in ((["--token-file", token_file()], "alice"), ([], None)):
        connect = serve(*options)
        async with connect(name) as agent:
            text = await agent.refused("finished_step", outputs={})
            assert "No active workflow session" in text
            assert torn not in text
    async with project.stdio_agent() as local:
        assert torn in await local.refused("finished_step", outputs={})


async def test_where_the_transport_has_sessions_each_has_a_stack_and_otherwise_the_stack_is_what_is_named(
    serve, token_file
):
    connect = serve("--token-file", token_file())
    async with connect("alice") as alice:
        begin = await alice.start()
        if connect.has_stacks:
            assert (await alice.finish({"a.md": "a.md"}))["begin_step"]["step_id"] == "b"
        else:
            for tool, arguments in (
                ("finished_step", {"outputs": {"a.md": "a.md"}}),
                ("abort_workflow", {"explanation": "e"}),
            ):
                text = await alice.refused(tool, **arguments)
                assert text.startswith("No active workflow session")
                assert begin["session_id"] in text
            reply = await alice.call("start_workflow", goal="g", job_name="demo", workflow_name="other")
            assert reply["stack"] == [{"workflow": "demo/other", "step": "b"}]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_of_the_transport_is_its_owners(listen, token_file, dial, hello, method):
    _, url = listen("http", "--token-file", token_file())
    body, headers = hello
    own = "Authorization: Bearer alices-token-for-tests"
    line = dial(url)
    line.ask("POST", "/mcp", *headers, own, body=body)
    session = f"Mcp-Session-Id: {line.answer().headers['mcp-session-id']}"

    def statuses(session, *credentials):
        line = dial(url)
        about = headers if method == "POST" else headers[1:2]
        line.ask(method, "/mcp", *about, *credentials, session, body=body if method == "POST" else b"")
        answer = line.answer()
        return answer.status, None if answer.status == 200 else line.body(answer)

    somebody = "Authorization: Bearer bobs-token-for-tests"
    unknown = statuses(f"Mcp-Session-Id: {UNKNOWN}", somebody)
    assert unknown[0] == 404
    assert statuses(session, somebody) == unknown
    assert statuses(session)[0] == 401
    assert statuses(session, own)[0] != 404


def test_messages_of_an_event_stream_are_its_owners(listen, token_file, dial, hello):
    _, url = listen("sse", "--token-file", token_file())
    body, headers = hello
    own, somebody = (f"Authorization: Bearer {name}s-token-for-tests" for name in ("alice", "bob"))
    stream = dial(url)
    stream.ask("GET", urlsplit(url).path, own)
    assert stream.answer().status == 200
    while b"session_id=" not in stream.rest or not stream.rest.endswith(b"\n"):
        stream.rest += stream.socket.recv(65536)
    path = stream.rest.decode().partition("data: ")[2].split()[0]

    def post(path, *credentials):
        line = dial(url)
        line.ask("POST", path, *headers, *credentials, body=body)
        answer = line.answer()
        return answer.status, line.body(answer)

    unknown = post(f"/messages/?session_id={UNKNOWN}", somebody)
    assert unknown[0] == 404
    assert post(path, somebody) == unknown
    assert post(path)[0] == 401
    assert post(path, own)[0] == 202


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_replicas_without_state_need_no_stickiness(project, listen, mode):
    """Two servers on one project, each call to the other one."""
    project.write_job(workflows={"main": ["a", "b"], "other": ["b"]})
    project.write("a.md")
    project.write("b.md")
    urls = [listen("http", "--stateless")[1] for _ in range(2)]
    async with (
        Client(StreamableHttpTransport(urls[0]), mode=mode) as first_client,
        Client(StreamableHttpTransport(urls[1]), mode=mode) as second_client,
    ):
        first, second = Agent(first_client), Agent(second_client)
        parent = (await first.start())["session_id"]
        child = (await second.start(workflow="other", parent_session_id=parent))["session_id"]
        reply = await first.finish({"b.md": "b.md"}, session_id=child, step_id="b")
        assert (reply["status"], reply["stack"]) == ("workflow_complete", [{"workflow": "demo/main", "step": "a"}])
        reply = await second.finish({"a.md": "a.md"}, session_id=parent, step_id="a")
        assert reply["begin_step"]["step_id"] == "b"
        repeated = await first.finish({"a.md": "a.md"}, session_id=parent, step_id="a")
        assert repeated["begin_step"] == reply["begin_step"]
        text = (await second.client.read_resource(f"deepwork://sessions/{parent}"))[0].text
        assert "Now at step 'b'" in text
        reply = await first.finish({"b.md": "b.md"}, session_id=parent, step_id="b")
        assert reply["status"] == "workflow_complete"


def test_a_server_without_state_gives_out_no_session_and_has_no_event_stream(listen, dial, hello):
    _, url = listen("http", "--stateless")
    body, headers = hello
    line = dial(url)
    line.ask("POST", "/mcp", *headers, body=body)
    answer = line.answer()
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers
    line = dial(url)
    line.ask("GET", "/mcp", "Accept: text/event-stream")
    assert line.answer().status == 405
