"""A real client is asked to open the page on which its user reviews a step, and its agent is told where it is."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from claude_desk import PROGRAM, START, Desk, RecordingModel

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]

SURVEY = {"outputs": {"notes": "notes.md"}}
TOUR = {"outputs": {"tour": "TOUR.md"}}
# Without a terminal it would send the first message before the servers are there.
PATIENCE = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}
DRAWN = re.compile(rb"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07]*\x07|\s")


def report(number, arguments):
    return {"id": f"toolu_{number}", "tool": "mcp__deepwork__finished_step", "input": arguments}


@pytest.fixture
def desk(node_clients, tmp_path):
    """A desk whose user reviews what is reported, and whose browser writes down what it is to open."""
    desk = Desk.make(tmp_path, node_clients)
    (desk.project / ".deepwork" / "config.yml").write_text("quality_gate: {runner: person}\n")
    for name in ("notes.md", "TOUR.md"):
        (desk.project / name).write_text("words\n")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/opened"\n')
    browser.chmod(0o755)
    seen = {"theme": "dark", "hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": ["stub"]}}
    projects = {"projects": {str(desk.project): {"hasTrustDialogAccepted": True}}}
    (tmp_path / "home" / ".claude.json").write_text(json.dumps({**seen, **projects}))
    more = {"BROWSER": str(browser), "DEEPWORK_NO_PLUGINS": "", "TERM": "xterm"}
    return replace(desk, environment={**desk.environment, **PATIENCE, **more})


@pytest.fixture
def address(desk, tmp_path):
    """The address of a dashboard of the project, on which its user can log in."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"local {'a' * 20} person\n")
    tokens.chmod(0o600)
    command = [PROGRAM, "dashboard", "--port", "0", "--token-file", str(tokens)]
    with subprocess.Popen(
        command, cwd=desk.project, env=desk.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process.stdout.readline().removeprefix("Dashboard: ").strip()
        process.terminate()


@contextmanager
def at_a_terminal(desk, model):
    """Start Claude Code as a user does, and yield its terminal."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    process = subprocess.Popen(
        ["claude", "--allowedTools", "mcp__deepwork", "--", "Do what the model says"],
        cwd=desk.project,
        env={**desk.environment, "ANTHROPIC_BASE_URL": model.url},
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,
    )
    os.close(secondary)
    try:
        yield primary
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(primary)


def press_enter_once_it_asks(terminal, is_over):
    """Read what is drawn, and from the first question about an address on press Enter until this is true."""
    drawn, pressed_at = b"", 0.0
    while not is_over():
        if select.select([terminal], [], [], 0.2)[0]:
            drawn += os.read(terminal, 65536)
        if b"wantstoopenaURL" in DRAWN.sub(b"", drawn) and time.monotonic() > pressed_at + 1:
            os.write(terminal, b"\r")
            pressed_at = time.monotonic()


def where_of(model, number):
    return json.loads(model.results[f"toolu_{number}"]["content"])["waits_for"]["where"]


def test_at_a_terminal_its_user_opens_the_page_once(desk, address, tmp_path):
    model = RecordingModel()
    for turn in (START, report(1, SURVEY), report(2, TOUR), report(3, TOUR)):
        model.turns.put(turn)
    with at_a_terminal(desk, model) as terminal:
        press_enter_once_it_asks(terminal, lambda: "toolu_3" in model.results)
    model.close()
    where = where_of(model, 2)
    assert where.startswith(f"{address}#/inbox/sessions:")
    assert (tmp_path / "opened").read_text().splitlines() == [where]
    assert where_of(model, 3) == where


def test_without_a_terminal_it_declines_by_itself_and_its_agent_is_told_where_the_page_is(desk, address, tmp_path):
    model = desk.agent(START, report(1, SURVEY), report(2, TOUR))
    assert where_of(model, 2).startswith(f"{address}#/inbox/sessions:")
    assert not (tmp_path / "opened").exists()
