"""Malformed bodies of POSTs: each gets the answer that the same line gets on stdio, and the server goes on."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from deepwork.testing import HttpWire
from frame_samples import ERAS, FRAMES, REQUESTS, request, says, told


@pytest.fixture
def posted(listen):
    """Start a server for HTTP, open a session in an era, and give a function that posts bodies, and the process."""

    def posted(era):
        process, url = listen("http")
        wire = HttpWire(url, mode=era)
        if era == "legacy":
            wire.greet()

        def post(body, **headers):
            answer = wire.post(body, **headers)
            wire.close()  # nothing that the server does to a connection reaches the next body
            return answer.status, next(iter(answer.messages), None), answer.headers

        return post, process

    return posted


@ERAS
def test_a_hostile_body_gets_the_answer_that_a_line_gets(posted, era):
    post, process = posted(era)
    answers = {name: post(frame) for name, (frame, *_) in FRAMES.items()}
    assert {name: (status, *told(answer)) for name, (status, answer, _) in answers.items()} == {
        name: (400, code, request_id) for name, (_, code, request_id, _) in FRAMES.items()
    }
    assert [name for name, (_, answer, _) in answers.items() if not says(answer, FRAMES[name][3])] == []
    process.terminate()
    assert process.stderr.read() == ""


@ERAS
def test_a_body_that_nobody_serves_is_refused_by_the_name_of_what_is_wrong(posted, era):
    post, process = posted(era)
    answers = {}
    for name, (method, params, *_) in REQUESTS.items():
        target = params.get("name", params.get("uri", ""))
        headers = {"Mcp-Method": method[:100], "Mcp-Name": str(target)}
        answers[name] = post(request(era, method, params), **(headers if era == "modern" else {}))[1]
    # What the headers of the newer era say has to be what the body says.
    differs = {} if era == "legacy" else dict.fromkeys(["a method of a megabyte", "a number as tool"], -32020)
    assert {name: told(answer) for name, answer in answers.items()} == {
        name: (differs.get(name, code), "me") for name, (_, _, code, _) in REQUESTS.items()
    }
    unclear = [name for name, answer in answers.items() if not says(answer, REQUESTS[name][3]) and name not in differs]
    assert unclear == []
    process.terminate()
    assert "Traceback" not in process.stderr.read()


def test_a_good_body_arrives_as_it_was_sent(posted):
    post, _ = posted("legacy")
    arguments = {"goal": "é😀\u2028" * 100_000, "job_name": "no such", "workflow_name": "x"}
    status, answer, _ = post(request("legacy", "tools/call", {"name": "start_workflow", "arguments": arguments}))
    assert status == 200
    assert "goal" in answer["result"]["content"][0]["text"]


def test_a_hostile_body_of_the_older_transport_is_answered_without_a_traceback(listen):
    process, url = listen("sse")
    address = urlsplit(url)
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=100)) as stream:
        stream.request("GET", address.path)
        with stream.getresponse() as events:
            assert events.readline() == b"event: endpoint\r\n"
            endpoint = events.readline().decode().removeprefix("data: ").strip()
            for frame, code, request_id, _ in FRAMES.values():
                with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=100)) as connection:
                    connection.request("POST", endpoint, frame, {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    assert (response.status, *told(json.load(response))) == (400, code, request_id)
    process.terminate()
    assert process.stderr.read() == ""
