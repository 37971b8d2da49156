"""However a review is ended, it leaves no process behind and no counted attempt."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepwork.testing import HttpWire, StdioWire, address_of, start_server
from deepwork.testing.wire import PATIENCE

START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
OUTPUTS = {"a.md": "a.md"}
META = {"progressToken": "t"}


@pytest.fixture
def start(reviewed, claude):
    """Start servers whose reviewer hangs; they are gone when the test has ended."""
    claude.behaves(mode="hang", leaves_child=True)
    processes = []

    def start(*options):
        process = start_server(reviewed.root, "--external-runner", "claude", *options)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def reviewing(start, claude):
    """Start a server on stdio, and have a step reviewed; `claude` is running when this returns."""

    def reviewing():
        wire = StdioWire(start())
        wire.greet()
        wire.call("start_workflow", **START)
        params = {"name": "finished_step", "arguments": {"outputs": OUTPUTS}, "_meta": META}
        request = wire.message("tools/call", params)
        wire.send_message(request)
        claude.started()
        return wire, request["id"]

    return reviewing


def ended(process, claude, history):
    """Wait for the end of the server, and check that it has left nothing."""
    assert process.wait(PATIENCE) == 0
    deadline = time.monotonic() + PATIENCE
    while claude.survivors():  # a server without time left is followed by its supervisors, which end the rest
        assert time.monotonic() < deadline, "the review goes on"
        time.sleep(0.01)
    assert history("attempt_given_back") == [{"reason": "the review was ended"}]


@pytest.mark.parametrize("pause", [None, 0.0, 0.05])
def test_a_server_that_is_stopped_by_one_or_two_signals_leaves_nothing(reviewing, claude, history, pause):
    wire, _ = reviewing()
    wire.process.send_signal(signal.SIGTERM)
    if pause is not None:
        time.sleep(pause)
        wire.process.send_signal(signal.SIGINT)
    ended(wire.process, claude, history)


def test_a_client_that_closes_stdin_leaves_nothing(reviewing, claude, history):
    wire, _ = reviewing()
    wire.process.stdin.close()
    ended(wire.process, claude, history)


def test_a_cancelled_call_ends_its_review_at_once(reviewing, claude, history):
    wire, request_id = reviewing()
    wire.notify("notifications/cancelled", requestId=request_id)
    deadline = time.monotonic() + PATIENCE
    while claude.survivors():
        assert time.monotonic() < deadline, "the review goes on"
        time.sleep(0.01)
    assert wire.ask("ping") == {}
    wire.process.stdin.close()
    ended(wire.process, claude, history)


def test_a_server_on_http_that_is_stopped_leaves_nothing(start, reviewed, claude, history):
    process = start("--transport", "http", "--port", "0")
    url = address_of(process, reviewed.root / "server.log")
    with HttpWire(url) as wire, ThreadPoolExecutor(1) as pool:
        wire.greet()
        session_id = wire.call("start_workflow", **START)["begin_step"]["session_id"]
        answer = pool.submit(
            wire.request, "tools/call", name="finished_step", arguments={"outputs": OUTPUTS, "session_id": session_id}
        )
        claude.started()
        process.send_signal(signal.SIGTERM)
        answer.exception(PATIENCE)
    ended(process, claude, history)
