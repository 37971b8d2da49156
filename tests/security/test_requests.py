"""Threats T21 and T22: requests that would stop the server, make it fetch something, or fill and spoil its log."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
TOOLS = {
    "start_workflow": ["goal", "job_name", "workflow_name", "instance_id", "parent_session_id"],
    "finished_step": ["outputs", "notes", "quality_review_override_reason", "session_id", "step_id"],
    "abort_workflow": ["explanation", "session_id"],
    "get_workflows": ["all"],
}


def call(number, tool, arguments):
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n"


def ask(process, *frames):
    """Send frames, and read as many answers."""
    process.stdin.write("".join(frames))
    process.stdin.flush()
    return [json.loads(process.stdout.readline()) for _ in frames]


def post(url, body, **headers):
    address = urlsplit(url)
    with closing(http.client.HTTPConnection(address.netloc, timeout=20)) as connection:
        accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", address.path, body, {**accepted, **headers})
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")


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
def test_no_single_request_stops_the_server(serve, first):
    process = serve()
    process.stdin.write(f"{first}\n{call('last', 'get_workflows', {})}")
    process.stdin.close()
    answers = [json.loads(line) for line in process.stdout]
    assert process.wait(20) == 0
    last = [answer for answer in answers if answer["id"] == "last"]
    assert len(last) == 1
    log = process.stderr.read()
    assert "Traceback" not in log
    assert "this is a bug" not in log


def test_no_single_body_stops_the_server(listen):
    process, url, _ = listen()
    for body in FATAL:
        for version in ("2025-11-25", "2026-07-28"):
            status, _ = post(url, body.encode(), **{"Mcp-Protocol-Version": version})
            assert 200 <= status < 500
    assert process.poll() is None
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    assert post(url, body)[0] == 200
    process.terminate()
    assert "Traceback" not in process.stderr.read()


def test_nothing_is_fetched_whatever_a_schema_or_a_reference_says(project, serve):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        project.write_job(**{"$schema": url, "$ref": url})
        project.write(".deepwork/jobs/other/job.yml", f"$ref: {url}\nname: {{$ref: '{url}'}}\n")
        process = serve()
        reference = {"$ref": url, "$schema": url, "$id": url}
        ask(
            process,
            call(1, "get_workflows", {}),
            call(2, "start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main", "$ref": url}),
            call(3, "finished_step", {"outputs": reference}),
            call(4, "finished_step", {"outputs": {"a.md": reference}}),
            call(5, "finished_step", {"outputs": {"a.md": url}}),
        )
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


# The log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_long_argument_stands_in_a_log(project, serve, tmp_path, level):
    project.write_job()
    file = tmp_path / "log.jsonl"
    process = serve("--log-level", level, "--log-json", str(file))
    secret = "s3cret-" * 50
    number = 0
    for tool, names in TOOLS.items():
        right = {"goal": "g", "job_name": "demo", "workflow_name": "main"} if tool == "start_workflow" else {}
        for name in names:
            for value in (secret, {"a.md": secret}, [secret], {secret: "a.md"}):
                number += 1
                ask(process, call(number, tool, {**right, name: value}))
    ask(process, call("unknown", secret, {}), call("still there", "get_workflows", {}))
    process.stdin.close()
    logs = [process.stderr.read(), file.read_text()]
    assert process.wait(20) == 0
    for log in logs:
        assert log.count("\n") >= number
        assert "s3cret-" * 29 not in log  # 203 characters
        assert "Traceback" not in log
    assert max(len(line.encode()) for line in logs[0].splitlines()) <= 500


# Each takes more bytes than it has characters: in UTF-8, or as the escape that people are shown.
WIDE = ["😀", "\u202e", "\0", "\U000e0001", "\n", "é"]


@pytest.mark.parametrize("char", WIDE, ids=ascii)
def test_a_refused_call_takes_500_bytes_of_the_log_at_most(project, serve, char):
    project.write_job()
    process = serve()
    ask(
        process,
        call(1, "start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}),
        call(2, char * 5000, {}),
        call(3, "start_workflow", {"goal": "g", "job_name": char * 500, "workflow_name": "main"}),
        call(4, "finished_step", {"outputs": {char * 500: "x"}}),
        call(5, "finished_step", {"outputs": {}, "session_id": char * 500}),
        call(6, "finished_step", {"outputs": {"a.md": char * 500}}),
        call(7, "finished_step", {"outputs": {"a.md": "a.md"}, char * 5000: 1}),
    )
    process.stdin.close()
    lines = process.stderr.read().splitlines()
    assert len(lines) == 7
    assert max(len(line.encode()) for line in lines) <= 500


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_token_stands_in_a_log(project, listen, tmp_path, level):
    tokens, file = tmp_path / "tokens", tmp_path / "log.jsonl"
    right, wrong = "right-token-" + "r" * 32, "wrong-token-" + "w" * 32
    tokens.write_text(f"alice {right}\n")
    tokens.chmod(0o600)
    process, url, log = listen("--token-file", str(tokens), "--log-level", level, "--log-json", str(file))
    body = call(1, "get_workflows", {})
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "get_workflows"}
    statuses = [
        post(url, body, Authorization=f"{scheme} {token}", **headers)[0]
        for scheme in ("Bearer", "Basic", "bearer")
        for token in (right, wrong, f"{right} {wrong}", "")
    ]
    statuses.append(post(f"{url}?token={wrong}", "no json", Authorization=f"Bearer {right}", **headers)[0])
    assert statuses[0] == 200
    assert {401} <= set(statuses)
    process.terminate()
    log += process.stderr.read()
    for text in (log, file.read_text()):
        assert "get_workflows" in text
        assert "token-" not in text
