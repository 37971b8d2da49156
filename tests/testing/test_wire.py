"""The wire clients: what they send, what they give, and what they do when the server goes away."""

from __future__ import annotations

import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from deepwork.testing import Gone, HttpWire, Refused, StdioWire, address_of, result_of, start_server
from deepwork.testing.wire import PATIENCE

START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}


@pytest.fixture
def stdio(project):
    """Start `deepwork serve`, and connect to it; it is gone when the test has ended."""
    wires = []

    def stdio(mode="legacy"):
        wires.append(StdioWire(start_server(project.root), mode=mode))
        return wires[-1]

    yield stdio
    for wire in wires:
        wire.process.kill()
        wire.close()


@pytest.fixture
def answering():
    """Answer every body that is posted with this status, these headers and this text; gives the address."""
    servers = []

    def answering(status, text, **headers):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/mcp"

    yield answering
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("mode", ["legacy", "modern"])
def test_a_workflow_is_led_over_stdio_in_both_modes(project, stdio, mode):
    project.write_job()
    project.write("a.md")
    wire = stdio(mode)
    assert "instructions" in wire.greet()
    assert wire.call("start_workflow", **START)["begin_step"]["step_id"] == "a"
    assert "Missing required outputs: a.md" in wire.refused("finished_step", outputs={})
    assert wire.call("finished_step", outputs={"a.md": "a.md"})["begin_step"]["step_id"] == "b"
    assert wire.close() == 0
    assert [json.loads(line)["id"] for line in wire.lines] == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", ["legacy", "modern"])
def test_a_workflow_is_led_over_http_in_both_modes(project, mode):
    project.write_job()
    process = start_server(project.root, "--transport", "http", "--port", "0")
    try:
        with HttpWire(address_of(process, project.root / "server.log"), mode=mode) as wire:
            wire.greet()
            assert wire.call("start_workflow", **START)["begin_step"]["step_id"] == "a"
            with pytest.raises(Refused, match="no/such"):
                wire.ask("no/such")
            assert wire.post(b"{").messages[0]["error"]["code"] == -32700
            process.terminate()
            assert process.wait(100) == 0
            with pytest.raises(Gone):
                wire.ask("ping")
    finally:
        process.kill()
        process.communicate()


def test_threads_share_a_wire_and_each_gets_its_own_answer(project, stdio):
    for name in ("one", "two", "three"):
        project.write_job(name)
    wire = stdio()
    wire.greet()
    futures = {
        name: [wire.send("tools/call", name="start_workflow", arguments={**START, "job_name": name}) for _ in range(5)]
        for name in ("one", "two", "three")
    }
    assert wire.unanswered > 0
    for name, answers in futures.items():
        for answer in answers:
            assert result_of(answer.result(PATIENCE))["stack"][-1]["workflow"] == f"{name}/main"
    assert wire.unanswered == 0


def test_any_line_can_be_written_and_its_answer_be_waited_for(stdio):
    wire = stdio()
    assert wire.post(b"no JSON", None).result(PATIENCE)["error"]["code"] == -32700
    assert wire.post(b'{"jsonrpc": "2.0", "id": "x", "method": "no/such"}', "x").result(PATIENCE)["id"] == "x"


def test_calls_that_a_killed_server_leaves_open_raise_gone(stdio):
    wire = stdio()
    wire.greet()
    wire.process.send_signal(signal.SIGSTOP)
    answers = [wire.send("ping") for _ in range(3)]
    wire.process.kill()
    for answer in answers:
        with pytest.raises(Gone):
            answer.result(PATIENCE)
    with pytest.raises(Gone):
        wire.ask("ping")
    assert wire.close() == -signal.SIGKILL


def test_a_tool_that_was_to_refuse_and_answers_is_told(stdio):
    wire = stdio()
    wire.greet()
    with pytest.raises(AssertionError, match="get_workflows was to refuse"):
        wire.refused("get_workflows")


def test_a_server_that_does_not_start_is_told_with_its_log(tmp_path):
    process = start_server(tmp_path, "--transport", "http", "--port", "0", "--no-such-option")
    with pytest.raises(Gone, match="No such option"):
        address_of(process, tmp_path / "server.log")
    process.communicate()


def test_messages_are_read_from_a_stream_of_events_too(answering):
    events = 'event: message\ndata: {"id": 7}\n\nevent: message\ndata: {"id": 1, "result": {"x": 1}}\n\n'
    with HttpWire(answering(200, events, Content_Type="text/event-stream")) as wire:
        assert wire.ask("ping") == {"x": 1}


@pytest.mark.parametrize(
    ("status", "text", "error", "says"),
    [
        (401, "Unauthorized", Refused, "status 401: Unauthorized"),
        (400, '{"id": 1, "error": {"code": 5}}', Refused, '{"code": 5}'),
        (503, "later", Gone, "is ending"),
        (200, '{"id": 2, "result": {}}', Gone, ""),
        (202, "", Gone, ""),
    ],
)
def test_a_body_that_is_not_answered_as_it_should_be_is_told(answering, status, text, error, says):
    with HttpWire(answering(status, text)) as wire, pytest.raises(error) as raised:
        wire.ask("ping")
    assert says in str(raised.value)
