"""The feed over WebSocket, in a server with tools and in one without."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from urllib.parse import quote

import anyio
import pytest
from anyio import to_thread
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

import deepwork_sql
from deepwork.testing import Agent, DeepworkProject

pytestmark = pytest.mark.anyio

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

LISTENING = re.compile(rb"listening on (http://[^/\s]+)(\S*)")


@pytest.fixture
def serve(project_on_database):
    """Start a command that serves, and give its address."""
    processes = []

    def serve(*arguments):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project_on_database.root), "--port", "0"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        processes.append(process)
        for line in process.stderr:
            if match := LISTENING.search(line):
                return match[1].decode()
        raise AssertionError("the server ended")

    yield serve
    for process in processes:
        process.terminate()
        assert process.wait(100) == 0
        process.stderr.close()


def feed_of(address, query="", **options):
    return connect(f"{address.replace('http', 'ws')}/plugins/sql/events{query}", proxy=None, **options)


async def event_of(socket):
    with anyio.fail_after(240):
        return json.loads(await socket.recv())


@pytest.mark.parametrize("command", [("events", "--serve"), ("serve", "--transport", "http")], ids=" ".join)
async def test_the_feed_is_sent_from_now_on(serve, database, command):
    await database.write(lambda tx: tx.emit("acme", "old", workflow_id=None, data={}))
    address = await to_thread.run_sync(serve, *command)

    async def write_until_seen():
        # What is written before the server has read where the feed ends is not sent.
        while True:
            await database.write(lambda tx: tx.emit("acme", "new", workflow_id="wf_1", data={"text": "ü"}))
            await anyio.sleep(0.2)

    async with feed_of(address, origin=address) as socket, anyio.create_task_group() as tasks:
        tasks.start_soon(write_until_seen)
        event = await event_of(socket)
        tasks.cancel_scope.cancel()
    assert (event["source"], event["event"], event["workflow_id"]) == ("acme", "new", "wf_1")
    assert event["data"] == {"text": "ü"}
    assert set(event) == {"id", "source", "event", "workflow_id", "at", "principal", "thing", "data"}


@on_sqlite
async def test_the_feed_is_sent_from_an_id_on_and_narrowed(serve, database):
    for source, name in (("acme", "a"), ("other", "b"), ("acme", "c")):
        await database.write(lambda tx, s=source, n=name: tx.emit(s, n, workflow_id="wf_1", data={}))
    first, *_ = await database.feed(None)
    address = await to_thread.run_sync(serve, "events", "--serve")
    async with feed_of(address, f"?since={first.id}&source=acme", origin=address) as socket:
        assert (await event_of(socket))["event"] == "c"


@on_sqlite
async def test_a_program_without_an_origin_or_with_a_foreign_one_is_refused(serve, database):
    address = await to_thread.run_sync(serve, "events", "--serve")
    for origin in (None, "http://evil.example"):
        with pytest.raises(InvalidStatus):
            async with feed_of(address, origin=origin):
                pass


@on_sqlite
async def test_a_malformed_cursor_closes_the_socket_with_the_reason(serve, database):
    address = await to_thread.run_sync(serve, "events", "--serve")
    async with feed_of(address, "?since=7", origin=address) as socket:
        with pytest.raises(ConnectionClosedError) as error, anyio.fail_after(240):
            await socket.recv()
    assert (error.value.rcvd.code, error.value.rcvd.reason) == (1008, "'7' is not the id of an event")


@on_sqlite
@pytest.mark.parametrize("since", ["9" * 5000, f"1-{'9' * 5000}", "🌊" * 200], ids=["xid", "seq", "waves"])
async def test_a_long_cursor_closes_the_socket_with_a_sentence(serve, database, since):
    address = await to_thread.run_sync(serve, "events", "--serve")
    async with feed_of(address, f"?since={quote(since)}", origin=address) as socket:
        with pytest.raises(ConnectionClosedError) as error, anyio.fail_after(240):
            await socket.recv()
    assert error.value.rcvd.code == 1008
    assert error.value.rcvd.reason.startswith(f"'{since[:20]}")


@on_sqlite
async def test_sessions_of_other_principals_are_not_sent_to_the_owner_of_a_token(serve, database, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("ada " + "a" * 40 + "\nbob " + "b" * 40 + "\n")
    tokens.chmod(0o600)
    start = await database.end_of_feed()
    for principal in ("ada", "bob"):
        await database.write(
            lambda tx, p=principal: tx.emit("core", "session:started", workflow_id="s", data={}, principal=p)
        )
    address = await to_thread.run_sync(serve, "events", "--serve", "--token-file", str(tokens))
    headers = {"Authorization": "Bearer " + "b" * 40}
    async with feed_of(address, f"?since={start}", additional_headers=headers) as socket:
        assert (await event_of(socket))["principal"] == "bob"


@on_sqlite
async def test_without_tokens_nobody_is_told_ids_or_texts_of_sessions(serve, database):
    """Who knows an id can go on with the session, and without tokens every process of the machine is asked for none."""
    start = await database.end_of_feed()
    secret = {"goal": "secret"}
    await database.write(
        lambda tx: tx.emit("core", "session:started", workflow_id="s1", data=secret, principal="local")
    )
    await database.write(lambda tx: tx.emit("acme", "new", workflow_id="wf_1", data={"text": "ü"}, principal="local"))
    address = await to_thread.run_sync(serve, "events", "--serve")
    async with feed_of(address, f"?since={start}", origin=address) as socket:
        of_core, of_plugin = await event_of(socket), await event_of(socket)
    fields = (of_core["source"], of_core["event"], of_core["workflow_id"], of_core["principal"], of_core["data"])
    assert fields == ("core", "session:started", None, None, {})
    assert (of_plugin["workflow_id"], of_plugin["data"]) == ("wf_1", {"text": "ü"})


@on_sqlite
@pytest.mark.parametrize("has_token", [True, False])
async def test_a_session_of_another_project_is_unknown_to_all_but_its_owner(
    serve, project_on_database, tmp_path, has_token
):
    """It answers as an id that never was; its owner, on stdio, is told where it is."""
    elsewhere = DeepworkProject(tmp_path / "elsewhere")
    for project in (elsewhere, project_on_database):
        project.write_job()
    async with elsewhere.agent(state_store="sql") as agent:
        session_id = (await agent.start())["session_id"]
    tokens = tmp_path / "tokens"
    tokens.write_text("bob " + "b" * 40 + "\n")
    tokens.chmod(0o600)
    options = ["--token-file", str(tokens)] if has_token else []
    command = ("serve", "--transport", "http", "--state-store", "sql", "--tools", "core", *options)
    address = await to_thread.run_sync(serve, *command)
    headers = {"Authorization": "Bearer " + "b" * 40} if has_token else {}
    async with Client(StreamableHttpTransport(f"{address}/mcp", headers=headers)) as client:
        answers = [await answers_about(Agent(client), asked_id) for asked_id in (session_id, "0123456789abcdef" * 2)]
    assert answers[0] == answers[1]
    async with project_on_database.agent(state_store="sql", tools=["core"]) as agent:
        assert all(
            f"belongs to {elsewhere.root} on the machine" in text for text in await answers_about(agent, session_id)
        )


async def answers_about(agent, session_id):
    """Ask what takes a session for one, and give the texts of the errors, without its id."""
    parent = {"goal": "g", "job_name": "demo", "workflow_name": "main", "parent_session_id": session_id}
    texts = [
        await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="?"),
        await agent.refused("abort_workflow", explanation="not mine", session_id=session_id),
        await agent.refused("start_workflow", **parent),
    ]
    return [text.replace(session_id, "ID") for text in texts]


@on_sqlite
async def test_a_session_of_an_agent_is_told_in_the_feed(project_on_database):
    project_on_database.write_job()
    project_on_database.write("a.md")
    async with project_on_database.agent(state_store="sql") as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish({"a.md": "a.md"}, session_id=session_id)
    from deepwork.api import open_context

    async with open_context("acme", project_on_database.root) as context:
        events = await (await deepwork_sql.database(context)).feed(None, source="core", workflow_id=session_id)
    assert [event.event for event in events][:3] == ["session:started", "session:step_begun", "session:step_completed"]
    assert {event.principal for event in events} == {"local"}
