"""However a review is ended, nothing of it is left: no process, no counted attempt."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import anyio
import pytest
from fastmcp import Client

pytestmark = pytest.mark.anyio

CALL = {"name": "finished_step", "arguments": {"outputs": {"a.md": "a.md"}}, "_meta": {"progressToken": "t"}}


class Server:
    """`deepwork serve` as a process, spoken to line by line."""

    def __init__(self, root, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "deepwork", "serve", "--path", str(root), "--external-runner", "claude", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, method, params, number=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        line = json.dumps(message if number is None else {**message, "id": number}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def ask(self, method, params, number):
        self.send(method, params, number)
        return json.loads(self.process.stdout.readline())

    def begin_review(self, claude):
        """Start a workflow and have its step reviewed; `claude` is at it when this returns."""
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.ask("initialize", hello, 1)
        self.send("notifications/initialized", {})
        start = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
        self.ask("tools/call", {"name": "start_workflow", "arguments": start}, 2)
        self.send("tools/call", CALL, 3)
        claude.started()

    def close(self):
        with suppress(OSError):
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def server(reviewed, claude):
    claude.behaves(mode="hang", leaves_child=True)
    servers = []

    def start(*arguments):
        servers.append(Server(reviewed.root, *arguments))
        return servers[-1]

    yield start
    for one in servers:
        one.close()


def ended(server, claude, history):
    """Wait for the end of the server, and look for what it has left."""
    began = time.monotonic()
    assert server.process.wait(10) == 0
    assert time.monotonic() - began < 2
    assert claude.survivors() == []
    assert history("attempt_given_back") == [{"reason": "the review was ended"}]


@pytest.mark.parametrize("pause", [None, 0.0, 0.05])
def test_a_server_that_is_told_to_stop_once_or_twice_leaves_nothing(server, claude, history, pause):
    one = server()
    one.begin_review(claude)
    one.process.send_signal(signal.SIGTERM)
    if pause is not None:
        time.sleep(pause)
        one.process.send_signal(signal.SIGINT)
    ended(one, claude, history)


def test_a_client_that_closes_stdin_leaves_nothing(server, claude, history):
    one = server()
    one.begin_review(claude)
    one.process.stdin.close()
    ended(one, claude, history)


def test_a_cancelled_call_ends_its_review_at_once(server, claude, history):
    one = server()
    one.begin_review(claude)
    one.send("notifications/cancelled", {"requestId": 3})
    deadline = time.monotonic() + 2
    while claude.survivors():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert one.ask("ping", {}, 4)
    one.process.stdin.close()
    ended(one, claude, history)


async def test_a_server_on_http_that_is_told_to_stop_leaves_nothing(server, claude, history):
    one = server("--transport", "http", "--port", "0")
    url = None
    while url is None:
        line = await anyio.to_thread.run_sync(one.process.stderr.readline)
        url = re.search(r"http://\S+", line.decode())
    with suppress(Exception):
        async with Client(url[0]) as client, anyio.create_task_group() as tasks:
            start = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
            session = (await client.call_tool("start_workflow", start)).structured_content["begin_step"]["session_id"]
            arguments = {**CALL["arguments"], "session_id": session}
            tasks.start_soon(client.call_tool, "finished_step", arguments)
            await anyio.to_thread.run_sync(claude.started)
            one.process.send_signal(signal.SIGTERM)
            await anyio.to_thread.run_sync(one.process.wait)
            tasks.cancel_scope.cancel()
    ended(one, claude, history)
