from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest


class Wire:
    """A `deepwork serve` process, spoken to line by line."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        self._asked = 0

    def send(self, method, **params):
        self._asked += 1
        self._write({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        return self._asked

    def notify(self, method):
        self._write({"jsonrpc": "2.0", "method": method})

    def answer(self, asked):
        """Read until the answer to a request has come."""
        while True:
            line = self.process.stdout.readline()
            assert line, f"the server has gone, saying: {self.process.stderr.read()}"
            self.lines.append(line)
            message = json.loads(line)
            if message.get("id") == asked:
                return message

    def ask(self, method, **params):
        return self.answer(self.send(method, **params))["result"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)

    def greet(self):
        about = {"name": "test", "version": "1"}
        hello = self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=about)
        self.notify("notifications/initialized")
        return hello

    def _write(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()


@pytest.fixture
def start(project):
    """Start `deepwork serve` as the leader of a process group, which is gone when the test has ended."""
    started = []

    def start(*arguments):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root), *arguments]
        process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def wire(start):
    """Start `deepwork serve` on stdio."""
    return lambda *arguments: Wire(start(*arguments))


@pytest.fixture
def listen(start):
    """Start `deepwork serve` on a free port, and give the process and its address."""

    def listen(transport, *arguments):
        process = start("--transport", transport, "--port", "0", *arguments)
        line = process.stderr.readline()
        while "listening on" not in line:
            assert line, "the server has gone"
            line = process.stderr.readline()
        return process, re.search(r"http://\S+", line)[0]

    return listen
