"""`deepwork serve` as the process that an agent starts: what is on its stdout, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from deepwork.errors import DeepWorkError
from deepwork.server.stdio.wire import run_stdio
from deepwork.testing.wire import HELLO, PATIENCE

DEMO = {"goal": "g", "job_name": "demo", "workflow_name": "main"}


@pytest.fixture
def nothing_is_left_of():
    """Show that a process and everything that it started are gone."""

    def nothing_is_left_of(process):
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)

    return nothing_is_left_of


# It takes no longer than usual to end, and to get a lock, but is given the time of a slow machine for it.
PATIENT = f"""
from deepwork.paths.folder import Folder
from deepwork.programs import process_end
process_end.END_SECONDS = Folder.locked.__wrapped__.__kwdefaults__["seconds"] = {PATIENCE}
from deepwork.cli.main import run
run()
"""


def end_by_term(process):
    process.send_signal(signal.SIGTERM)


def end_by_int(process):
    process.send_signal(signal.SIGINT)


def end_by_closing_stdin(process):
    process.stdin.close()


ENDS = pytest.mark.parametrize("end", [end_by_term, end_by_int, end_by_closing_stdin])


def test_stdout_carries_the_protocol_and_nothing_else_whatever_a_plugin_prints(project, install, wire):
    install("noisy")
    project.write_job()
    server = wire()
    server.greet()
    assert server.call("shout")["content"][0]["text"] == "done"
    server.call("start_workflow", **DEMO)
    server.refused("no_such_tool")
    server.close()
    log = server.process.stderr.read()
    assert [json.loads(line)["jsonrpc"] for line in server.lines] == ["2.0"] * 4
    for where in ("import", "hook", "tool"):
        for how in ("print", "write", "echo"):
            assert f"{how} at {where}\n" in log


def test_lines_that_are_no_messages_harm_nobody(project, wire):
    server = wire()
    server.greet()
    for nonsense in ("", "no json", "[1, 2", '{"jsonrpc": "2.0"}', "\x00\x01", '"text"', "é" * 1000):
        server.write(nonsense.encode())
    assert "jobs" in server.call("get_workflows")


def test_a_message_of_a_megabyte_arrives_whole(project, wire):
    project.write_job()
    server = wire()
    server.greet()
    text = server.refused("start_workflow", **{**DEMO, "goal": "g" * 1024 * 1024})
    assert "goal" in text
    assert "get_workflows" not in text
    assert server.call("start_workflow", **DEMO)["begin_step"]["step_id"] == "a"


@ENDS
def test_it_ends_cleanly_and_at_once(project, wire, nothing_is_left_of, end):
    project.write_job()
    server = wire()
    server.greet()
    server.call("start_workflow", **DEMO)
    end(server.process)
    assert server.process.wait(100) == 0
    nothing_is_left_of(server.process)
    assert "Traceback" not in server.process.stderr.read()


@ENDS
def test_it_ends_cleanly_and_at_once_while_a_call_is_in_flight_and_closes_its_store(
    project, install, wire, nothing_is_left_of, tmp_path, end
):
    install("good")
    arrived = tmp_path / "arrived"
    os.mkfifo(arrived)
    server = wire("--state-store", "acme", program=("-c", PATIENT))
    server.greet()
    server.call("start_workflow", goal="g", job_name="acme_job", workflow_name="main")
    server.send("tools/call", name="acme_wait", arguments={"path": str(arrived)})
    arrived.read_text()
    end(server.process)
    assert server.process.wait(100) == 0
    nothing_is_left_of(server.process)
    assert (project.root / "acme-store.log").read_text() == "opened\nclosed\n"
    assert "Traceback" not in server.process.stderr.read()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows which files a process has open")
def test_further_signals_do_not_cut_a_save_short(project, wire, eventually):
    """All locks of the store are held here; the save that waits for one is finished once they are given back."""
    project.write_job()
    project.state.mkdir(parents=True, mode=0o700)
    locks = [(project.state / f"sessions.{number}.lock").open("w") for number in range(16)]
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_EX)
    server = wire(program=("-c", PATIENT))
    server.greet()
    server.send("tools/call", name="start_workflow", arguments=DEMO)

    def waits_for_a_lock():
        for name in os.listdir(f"/proc/{server.process.pid}/fd"):
            with suppress(FileNotFoundError):  # closed since it was listed
                if os.readlink(f"/proc/{server.process.pid}/fd/{name}").endswith(".lock"):
                    return True
        return False

    eventually(waits_for_a_lock)
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGINT):
        server.process.send_signal(number)
        time.sleep(0.05)
    assert server.process.poll() is None
    for lock in locks:
        lock.close()
    assert server.process.wait(100) == 0
    (session,) = project.state.glob("session_*.json")
    assert json.loads(session.read_text())["goal"] == "g"
    assert "Traceback" not in server.process.stderr.read()


def test_a_client_that_is_gone_ends_the_server_quietly_while_a_call_is_in_flight(
    project, install, start, nothing_is_left_of, tmp_path
):
    install("good")
    arrived = tmp_path / "arrived"
    os.mkfifo(arrived)
    process = start()

    def send(request_id, method, **params):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + "\n")
        process.stdin.flush()

    send(1, "initialize", **HELLO)
    assert process.stdout.readline()
    send(2, "tools/call", name="acme_wait", arguments={"path": str(arrived)})
    arrived.read_text()
    process.stdout.close()
    send(3, "tools/list")
    assert process.wait(100) == 0
    nothing_is_left_of(process)
    assert "bug" not in process.stderr.read()


def test_an_interrupt_that_comes_before_the_event_loop_ends_the_server(project):
    """The signal is raised where asyncio makes its main task; it used to be taken for a cancellation, and lost."""
    program = (
        "import asyncio, os, runpy, signal, sys\n"
        "class Interrupted(asyncio.Runner):\n"
        "    def run(self, *arguments, **options):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        return super().run(*arguments, **options)\n"
        "import anyio._backends._asyncio as backend\n"
        "backend.Runner = asyncio.Runner = Interrupted\n"
        "sys.argv[0] = 'deepwork'\n"
        "runpy.run_module('deepwork', run_name='__main__')\n"
    )
    command = [sys.executable, "-c", program, "serve", "--path", str(project.root)]
    read_end, write_end = os.pipe()
    with subprocess.Popen(command, stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        os.close(read_end)
        _, errors = server.communicate(timeout=240)
    os.close(write_end)
    assert (server.returncode, b"Traceback" in errors) == (0, False)


@pytest.mark.parametrize("name", ["_mcp_server", "_lifespan_manager"])
def test_a_fastmcp_that_lacks_what_stdio_needs_is_refused_at_the_start(project, monkeypatch, name):
    """Its own stdio server would answer on stderr, and the client would wait for ever."""
    server = project.server()
    monkeypatch.setattr(type(server), name, None, raising=False)
    monkeypatch.setitem(vars(server), name, None)
    with pytest.raises(DeepWorkError, match="cannot be served over stdio"):
        run_stdio(server, 0, 1, when_ready=lambda: pytest.fail("it was served"))
