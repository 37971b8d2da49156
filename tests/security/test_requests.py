"""Threats T21 and T22: requests that would stop the server, make it fetch something, or fill and spoil its log."""

from __future__ import annotations

import json
import socket
from contextlib import suppress

import pytest

from deepwork.testing import HttpWire, Refused, StdioWire

DEMO = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
TOOLS = {
    "start_workflow": ["goal", "job_name", "workflow_name", "instance_id", "parent_session_id"],
    "finished_step": ["outputs", "notes", "quality_review_override_reason", "session_id", "step_id"],
    "abort_workflow": ["explanation", "session_id"],
    "get_workflows": ["all"],
}


@pytest.fixture
def wire(serve):
    """Start `deepwork serve` on stdio, and connect without a handshake."""
    return lambda *arguments: StdioWire(serve(*arguments), mode="modern")


def outcome(wire, tool, arguments):
    """Call a tool, which may answer or refuse."""
    with suppress(Refused):
        wire.call(tool, **arguments)


# The worst single requests that are known: of other servers, and of this one.
FATAL = [
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":{}}}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[1],"progress":"x"}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized","params":{"_meta":[]}}',
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":[],"capabilities":5}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_workflows","_meta":{"progressToken":{}}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + "[" * 100_000,
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    '{"jsonrpc":"2.0","id":1,"result":{"x":"\\udfff"}}',
    '{"jsonrpc":"2.0","id":-1,"error":{"code":0,"message":"","data":[]}}',
    "\x00" * 100_000,
]


@pytest.mark.parametrize("first", FATAL, ids=range(len(FATAL)))
def test_no_single_request_stops_the_server(wire, first):
    server = wire()
    server.write(first.encode())
    last = server.message("tools/call", {"name": "get_workflows", "arguments": {}}) | {"id": "last"}
    server.write(json.dumps(last).encode())
    assert server.close() == 0
    assert [json.loads(line)["id"] for line in server.lines].count("last") == 1
    log = server.process.stderr.read()
    assert "Traceback" not in log
    assert "this is a bug" not in log


def test_no_single_body_stops_the_server(listen):
    process, url, _ = listen()
    for body in FATAL:
        for mode in ("legacy", "modern"):
            with HttpWire(url, mode=mode) as wire:
                assert 200 <= wire.post(body.encode()).status < 500
    assert process.poll() is None
    with HttpWire(url) as wire:
        assert wire.greet()
    process.terminate()
    assert "Traceback" not in process.stderr.read()


def test_nothing_is_fetched_whatever_a_schema_or_a_reference_says(project, wire):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        project.write_job(**{"$schema": url, "$ref": url})
        project.write(".deepwork/jobs/other/job.yml", f"$ref: {url}\nname: {{$ref: '{url}'}}\n")
        server = wire()
        reference = {"$ref": url, "$schema": url, "$id": url}
        for tool, arguments in (
            ("get_workflows", {}),
            ("start_workflow", {**DEMO, "$ref": url}),
            ("finished_step", {"outputs": reference}),
            ("finished_step", {"outputs": {"a.md": reference}}),
            ("finished_step", {"outputs": {"a.md": url}}),
        ):
            outcome(server, tool, arguments)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


# The log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_long_argument_stands_in_a_log(project, wire, tmp_path, level):
    project.write_job()
    file = tmp_path / "log.jsonl"
    server = wire("--log-level", level, "--log-json", str(file))
    secret = "s3cret-" * 50
    number = 0
    for tool, names in TOOLS.items():
        for name in names:
            for value in (secret, {"a.md": secret}, [secret], {secret: "a.md"}):
                number += 1
                outcome(server, tool, {**(DEMO if tool == "start_workflow" else {}), name: value})
    outcome(server, secret, {})
    outcome(server, "get_workflows", {})
    assert server.close() == 0
    logs = [server.process.stderr.read(), file.read_text()]
    for log in logs:
        assert log.count("\n") >= number
        assert "s3cret-" * 29 not in log  # 203 characters
        assert "Traceback" not in log
    assert max(len(line.encode()) for line in logs[0].splitlines()) <= 500


# Each takes more bytes than it has characters: in UTF-8, or as the escape that people are shown.
WIDE = ["😀", "\u202e", "\0", "\U000e0001", "\n", "é"]


@pytest.mark.parametrize("char", WIDE, ids=ascii)
def test_a_refused_call_takes_500_bytes_of_the_log_at_most(project, wire, char):
    project.write_job()
    server = wire()
    server.call("start_workflow", **DEMO)
    server.refused(char * 5000)
    server.refused("start_workflow", **{**DEMO, "job_name": char * 500})
    server.refused("finished_step", outputs={char * 500: "x"})
    server.refused("finished_step", outputs={}, session_id=char * 500)
    server.refused("finished_step", outputs={"a.md": char * 500})
    server.refused("finished_step", outputs={"a.md": "a.md"}, **{char * 5000: 1})
    assert server.close() == 0
    lines = server.process.stderr.read().splitlines()
    assert len(lines) == 7
    assert max(len(line.encode()) for line in lines) <= 500


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_token_stands_in_a_log(project, listen, tmp_path, level):
    tokens, file = tmp_path / "tokens", tmp_path / "log.jsonl"
    right_token, wrong_token = "right-token-" + "r" * 32, "wrong-token-" + "w" * 32
    tokens.write_text(f"alice {right_token}\n")
    tokens.chmod(0o600)
    process, url, log = listen("--token-file", str(tokens), "--log-level", level, "--log-json", str(file))
    refusals = []
    for scheme in ("Bearer", "Basic", "bearer"):
        for token in (right_token, wrong_token, f"{right_token} {wrong_token}", ""):
            with HttpWire(url, mode="modern", headers={"Authorization": f"{scheme} {token}"}) as client:
                try:
                    client.call("get_workflows")
                except Refused as error:
                    refusals.append(str(error))
    with HttpWire(
        f"{url}?token={wrong_token}", mode="modern", headers={"Authorization": f"Bearer {right_token}"}
    ) as client:
        client.post(b"no json")
    assert len(refusals) == 10
    assert all(refusal.startswith("status 401: ") for refusal in refusals)
    process.terminate()
    log += process.stderr.read()
    for text in (log, file.read_text()):
        assert "get_workflows" in text
        assert "token-" not in text
