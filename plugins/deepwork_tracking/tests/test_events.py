"""The live events, heard over real WebSockets of real servers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from deepwork.testing import address_of
from deepwork.testing.wire import PATIENCE
from deepwork_sql import Event
from deepwork_tracking import events
from deepwork_tracking.events import MAX_FRAME, frame_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def serving(shared):
    """Start a process that serves the events: `with serving(*command) as port`."""

    @contextmanager
    def serving(*command):
        program = [sys.executable, "-m", "deepwork", *command, "--path", str(shared.root), "--port", "0"]
        log = shared.root.parent / "events.log"
        with log.open("w") as stderr, subprocess.Popen(program, stderr=stderr) as server:
            try:
                yield urlsplit(address_of(server, log)).port
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait()

    return serving


@asynccontextmanager
async def listening(port, query="", **options):
    """Listen as programs do: with the server's own Origin."""
    address = f"127.0.0.1:{port}"
    options = {"origin": f"http://{address}", "max_size": None, "proxy": None, **options}
    async with connect(f"ws://{address}/plugins/tracking/events{query}", **options) as socket:
        yield socket


async def hear(socket, number):
    """Wait for so many messages."""
    with anyio.fail_after(240):
        return [json.loads(await socket.recv()) for _ in range(number)]


async def hear_until_closed(socket):
    """Take what the server had sent before it dropped the listener."""
    messages = []
    with suppress(ConnectionClosed):
        while True:
            messages += await hear(socket, 1)
    return messages


def names(messages):
    return [message["event"] for message in messages]


@pytest.mark.parametrize("command", [["serve", "--transport", "http"], ["events", "--serve"]])
async def test_what_agents_do_in_other_processes_is_heard_in_order(shared, serving, command):
    with serving(*command) as port:
        async with listening(port) as socket, shared.other_tracker() as agent:
            workflow_id, phase_id, task_id = await agent.running()
            log = {"task_id": task_id}
            await agent.call("log_milestone", **log, message="half", progress=50)
            await agent.call("log_decision", **log, category="other", question="q", chosen="c", reasoning="r")
            issue = {"type": "other", "description": "d", "resolution": "r", "requires_human_review": True}
            issue_id = (await agent.call("log_issue", **log, **issue))["issue_id"]
            await agent.complete(task_id)
            await agent.call("complete_phase", phase_id=phase_id, status="completed")
            await agent.end(workflow_id)
            assert shared.run_at_terminal("track", "resolve", issue_id, "--by", "me").returncode == 0
            messages = await hear(socket, 12)
            context = await agent.context(workflow_id, "tasks", "phase_summary", "decisions", "milestones")
    assert names(messages) == [
        *("workflow:created", "phase:created", "workflow:updated", "task:created"),
        *("milestone:created", "decision:created", "issue:created", "task:updated"),
        *("phase:updated", "workflow:updated", "workflow:updated", "issue:updated"),
    ]
    assert all(message.keys() == {"id", "event", "workflow_id", "at", "data"} for message in messages)
    assert {message["workflow_id"] for message in messages} == {workflow_id}
    assert {message["data"]["workflow_id"] for message in messages} == {workflow_id}
    rows = {message["event"]: {**message["data"]} for message in messages}
    whose = {"workflow_id": workflow_id}
    assert rows["task:updated"] == {**whose, **context["tasks"][0]}
    assert rows["phase:updated"] == {**whose, **context["phase_summary"][0]}
    assert rows["decision:created"] == {**whose, **context["decisions"][0]}
    assert rows["milestone:created"] == {**whose, **context["milestones"][0]}
    assert rows["workflow:updated"].items() <= context.items()
    assert rows["issue:updated"]["resolved_by"] == "me"


async def test_new_work_on_a_finished_workflow_is_heard_as_an_update(shared, serving):
    async with shared.tracker() as agent:
        workflow_id = await agent.workflow()
        phase_id = await agent.phase(workflow_id)
        await agent.end(workflow_id)
        with serving("events", "--serve") as port:
            async with listening(port) as socket:
                await agent.task(workflow_id, phase_id)
                messages = await hear(socket, 2)
    assert names(messages) == ["workflow:updated", "task:created"]
    assert messages[0]["data"]["workflow_status"] == "IN_PROGRESS"


async def test_a_listener_that_connects_again_goes_on_after_the_last_event_it_has(shared, serving):
    async with shared.tracker() as agent:
        _, _, task_id = await agent.running()

        async def log(*numbers):
            for number in numbers:
                await agent.call("log_milestone", task_id=task_id, message=str(number))

        with serving("events", "--serve") as port:
            async with listening(port) as socket:
                await log(*range(5))
                heard = await hear(socket, 5)
            await log(*range(5, 450))
            async with listening(port, f"?since={heard[-1]['id']}") as socket, anyio.create_task_group() as tasks:
                tasks.start_soon(log, *range(450, 500))
                heard += await hear(socket, 495)
    assert [message["data"]["message"] for message in heard] == [str(number) for number in range(500)]
    assert len({message["id"] for message in heard}) == 500


async def test_a_listener_hears_one_workflow_if_it_wants_only_that(shared, serving):
    async with shared.tracker() as agent:
        first, second = await agent.workflow(), await agent.workflow()
        with serving("events", "--serve") as port:
            async with listening(port, f"?workflow_id={second}") as socket:
                await agent.phase(first)
                await agent.phase(second)
                await agent.phase(first, 2)
                await agent.end(second)
                messages = await hear(socket, 3)
            async with listening(port, f"?workflow_id={second}&since={messages[0]['id']}") as socket:
                assert await hear(socket, 2) == messages[1:]
    assert names(messages) == ["phase:created", "workflow:updated", "workflow:updated"]


async def test_a_cursor_that_is_none_and_an_unknown_address_are_refused_before_the_socket_opens(shared, serving):
    with serving("events", "--serve") as port:
        for query, status in (("?since=yesterday", 400), (f"?since={'9' * 5000}-1", 400), ("/more", 404)):
            with pytest.raises(InvalidStatus) as error:
                async with listening(port, query):
                    pass
            assert error.value.response.status_code == status
        with pytest.raises(InvalidStatus) as error:
            async with listening(port, origin=None):
                pass
        assert error.value.response.status_code == 403


class Feed:
    """A database whose feed has nothing yet, and to whose followers so many events come."""

    def __init__(self, new):
        self._new = new
        self.has_told_all = anyio.Event()

    async def feed(self, after, **_filters):
        return []

    async def follow(self, after, **_filters):
        for number in range(self._new):
            yield Event(f"0-{number}", "tracking", "milestone:created", "tw_1", 0, None, {})
            await anyio.lowlevel.checkpoint()
        self.has_told_all.set()
        await anyio.sleep_forever()


@pytest.mark.parametrize(("new", "is_dropped"), [(events.MAX_BEHIND + 1, False), (events.MAX_BEHIND + 2, True)])
async def test_a_listener_that_is_a_thousand_events_behind_is_dropped(new, is_dropped):
    """It takes none of the frames: one is being sent, and a thousand may wait."""
    feed, sent = Feed(new), []

    async def send(message):
        sent.append(message["type"])
        if message["type"] == "websocket.send":
            await anyio.sleep_forever()

    async def receive():
        await feed.has_told_all.wait()
        return {"type": "websocket.disconnect"}

    with anyio.fail_after(PATIENCE):
        await events.Connection(feed, None, send).serve("0-0", receive)
    assert sent == ["websocket.send", *(["websocket.close"] if is_dropped else [])]


@pytest.mark.slow
async def test_a_stuck_listener_is_dropped_by_a_server_and_can_go_on_where_it_was(shared, serving):
    async with shared.tracker() as agent:
        _, _, task_id = await agent.running()
        with serving("events", "--serve") as port:
            async with listening(port, max_queue=1, compression=None) as socket:
                (first,) = await _log_and_hear(agent, task_id, socket)
                for _ in range(1_500):
                    await agent.call("log_milestone", task_id=task_id, message="m", metadata={"large": "x" * 30_000})
                heard = [first, *await hear_until_closed(socket)]
            async with listening(port, f"?since={heard[-1]['id']}") as socket:
                heard += await hear(socket, 1_501 - len(heard))
    assert len({message["id"] for message in heard}) == 1_501


async def _log_and_hear(agent, task_id, socket):
    await agent.call("log_milestone", task_id=task_id, message="first")
    return await hear(socket, 1)


def test_a_row_that_is_too_large_for_a_frame_is_sent_without_what_is_long():
    data = {"workflow_id": "tw_1", "status": "SUCCESS", "summary": "é" * 60_000, "achievements": ["é" * 8_000] * 200}
    event = Event("1-2", "tracking", "task:updated", "tw_1", 5, None, data)
    text = frame_of(event)
    assert len(text.encode()) <= MAX_FRAME
    message = json.loads(text)
    assert message["data"] == {"workflow_id": "tw_1", "status": "SUCCESS", "truncated": True}
    assert message["at"] == 5
