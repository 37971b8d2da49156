"""Malformed frames, or messages out of order: each gets the one answer that it is owed, and the server goes on.

The same frames come as lines of stdin, in both eras of the protocol and before any, and as bodies of POSTs.
"""

from __future__ import annotations

import http.client
import json
import random
import subprocess
import sys
import time
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwork.server.frames import MAX_LINE, BadFrame, read_frame
from deepwork.testing import HttpWire
from deepwork.testing.wire import ENVELOPE, HELLO

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


def deep(depth):
    return b"[" * depth + b"]" * depth


def ping(params=b"{}", request_id=b'"me"'):
    return b'{"jsonrpc":"2.0","id":' + request_id + b',"method":"ping","params":' + params + b"}"


# Malformed frames: the frame, the code of its answer, the id of its answer, and the answer's text.
FRAMES = {
    "text": (b"no json", PARSE_ERROR, None, "line 1 column 2"),
    "half a message": (ping()[:-4], PARSE_ERROR, "me", "EOF"),
    "two messages on a line": (ping() + ping(), PARSE_ERROR, "me", "trailing characters"),
    "lists nested deeper than 198": (ping(b'{"a":' + deep(200) + b"}"), PARSE_ERROR, "me", "recursion limit"),
    "lists nested 100,000 deep": (ping(b'{"a":' + deep(100_000) + b"}"), PARSE_ERROR, "me", "recursion limit"),
    "deep lists before the id": (b'{"a":' + deep(1000) + b',"id":7}', PARSE_ERROR, 7, "recursion limit"),
    "an id inside of something else": (b'{"a":{"id":5},"id":7,\xff}', PARSE_ERROR, 7, "column"),
    "a lone surrogate": (ping(rb'{"a":"\ud800"}'), PARSE_ERROR, "me", "hex escape"),
    "a lone surrogate as id": (ping(b"[]", rb'"\udfff"'), PARSE_ERROR, None, "surrogate"),
    "an integer of 5,000 digits": (ping(b'{"a":' + b"9" * 5000 + b"}"), PARSE_ERROR, "me", "number out of range"),
    "an id of 5,000 digits": (ping(b"{}", b"9" * 5000), PARSE_ERROR, None, "number out of range"),
    "binary": (bytes(range(128, 256)), PARSE_ERROR, None, "UTF-8"),
    "NUL bytes": (b"\0" * 1000, PARSE_ERROR, None, "column 1"),
    "a NUL in a message": (ping(b'{"a":"\0"}'), PARSE_ERROR, "me", "control character"),
    "a message that is not UTF-8": (ping(b'{"a":"\xff"}'), PARSE_ERROR, "me", "unicode"),
    "a surrogate in UTF-8": (ping(b'{"a":"\xed\xa0\x80"}'), PARSE_ERROR, "me", "unicode"),
    "an overlong encoding": (ping(b'{"a":"\xc0\x80"}'), PARSE_ERROR, "me", "unicode"),
    "a byte order mark": (b"\xef\xbb\xbf" + ping(), PARSE_ERROR, "me", "UTF-8"),
    "UTF-16": (ping().decode().encode("utf-16"), PARSE_ERROR, None, "UTF-8"),
    "a megabyte that is no JSON": (b"x" * 1_000_000, PARSE_ERROR, None, "column 1"),
    "a megabyte of quotes": (rb'{"id":7,"a":' + rb'"\\' * 300_000, PARSE_ERROR, 7, "column"),
    "a batch": (b"[" + ping() + b"]", INVALID_REQUEST, None, "batches"),
    "an empty batch": (b"[]", INVALID_REQUEST, None, "batches"),
    "a number": (b"5", INVALID_REQUEST, None, "JSON object"),
    "a string": (b'"ping"', INVALID_REQUEST, None, "JSON object"),
    "null": (b"null", INVALID_REQUEST, None, "JSON object"),
    "an empty object": (b"{}", INVALID_REQUEST, None, "jsonrpc: "),
    "no version": (b'{"id":7,"method":"ping"}', INVALID_REQUEST, 7, "jsonrpc: "),
    "another version": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', INVALID_REQUEST, 7, "jsonrpc: "),
    "a number as version": (b'{"jsonrpc":2.0,"id":7,"method":"ping"}', INVALID_REQUEST, 7, "jsonrpc: "),
    "no method": (b'{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, 7, "method: is required"),
    "a number as method": (b'{"jsonrpc":"2.0","id":7,"method":5}', INVALID_REQUEST, 7, "method: "),
    "null as method": (b'{"jsonrpc":"2.0","id":7,"method":null}', INVALID_REQUEST, 7, "method: "),
    "a list as params": (ping(b"[1]"), INVALID_REQUEST, "me", "params: "),
    "a string as params": (ping(b'"x"'), INVALID_REQUEST, "me", "params: "),
    "a fraction as id": (ping(b"{}", b"1.5"), INVALID_REQUEST, None, "id: "),
    "an integer with a point as id": (ping(b"{}", b"1.0"), INVALID_REQUEST, None, "id: "),
    "null as id": (ping(b"{}", b"null"), INVALID_REQUEST, None, "id: "),
    "true as id": (ping(b"{}", b"true"), INVALID_REQUEST, None, "id: "),
    "a list as id": (ping(b"{}", b"[1]"), INVALID_REQUEST, None, "id: "),
    "an object as id": (ping(b"{}", b"{}"), INVALID_REQUEST, None, "id: "),
    "null as id, written otherwise": (ping().replace(b'"id":"me"', rb'"\u0069d":null'), INVALID_REQUEST, None, "id: "),
    "a notification with an id of a wrong type": (
        b'{"jsonrpc":"2.0","id":1.5,"method":"notifications/initialized"}',
        INVALID_REQUEST,
        None,
        "id: ",
    ),
    "a request that looks like a response": (
        b'{"jsonrpc":"2.0","id":7,"method":5,"result":{}}',
        INVALID_REQUEST,
        7,
        "method: ",
    ),
    "a wrong response": (b'{"jsonrpc":"2.0","id":7,"result":5}', INVALID_REQUEST, None, "response"),
    "a wrong error": (b'{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}', INVALID_REQUEST, None, "response"),
    "a notification with wrong params": (
        b'{"jsonrpc":"2.0","method":"notifications/initialized","params":5}',
        INVALID_REQUEST,
        None,
        "params: ",
    ),
    "a notification without a name": (b'{"jsonrpc":"2.0","method":7}', INVALID_REQUEST, None, "method: "),
}

# Messages that no server of this kind can serve: method, params, the code, and what the answer says.
REQUESTS = {
    "an unknown method": ("no/such", {}, METHOD_NOT_FOUND, "no/such"),
    "a method without a name": ("", {}, METHOD_NOT_FOUND, "not found"),
    "a method of a megabyte": ("x" * 1_000_000, {}, METHOD_NOT_FOUND, "xxx"),
    "no tool": ("tools/call", {}, INVALID_PARAMS, "params.name: "),
    "a number as tool": ("tools/call", {"name": 5}, INVALID_PARAMS, "params.name: "),
    "a list as arguments": ("tools/call", {"name": "x", "arguments": []}, INVALID_PARAMS, "params.arguments: "),
    "a string as arguments": ("tools/call", {"name": "x", "arguments": "{}"}, INVALID_PARAMS, "params.arguments: "),
    "a string as _meta": ("tools/call", {"name": "x", "_meta": "x"}, INVALID_PARAMS, "params._meta"),
    "a number as cursor": ("tools/list", {"cursor": 5}, INVALID_PARAMS, "params.cursor: "),
    "no such resource": ("resources/read", {"uri": "file:///etc/passwd"}, INVALID_PARAMS, "file:///etc/passwd"),
    "no such prompt": ("prompts/get", {"name": "zz"}, INVALID_PARAMS, "zz"),
    "nothing to complete": ("completion/complete", {}, INVALID_PARAMS, "params.ref: "),
}

# What gets no answer, because it asks for none.
SILENT = {
    "a blank line": b"",
    "a line of white space": b" \t\r",
    "an unknown notification": b'{"jsonrpc":"2.0","method":"notifications/no_such"}',
    "a notification of a call": b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"get_workflows"}}',
    "a cancellation of nothing": b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    "a cancellation of a list": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
    "a cancellation of a stranger": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}',
    "progress of nothing": b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{}}}',
    "an answer that nobody waits for": b'{"jsonrpc":"2.0","id":7,"result":{}}',
    "an error that nobody waits for": b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
}

# Ids that are right, however odd.
IDS = [0, -1, 2**70, 10**4000, "", "7", "\0", "é😀", "i" * 1_000_000]


def request(era, method, params, request_id="me"):
    if era == "modern":
        params = {"_meta": ENVELOPE, **params}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode()


class Stdio:
    """A server on stdio that is given bytes; what it answers is read line by line, in the order in which it comes."""

    def __init__(self, process, era):
        self.process = process
        self.era = era
        self._calls = 0

    def open(self):
        if self.era == "legacy":
            self.ask(request("legacy", "initialize", HELLO))
            self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return self

    def send(self, frame, end=b"\n"):
        stdin = self.process.stdin.buffer
        stdin.write(frame + end)
        stdin.flush()

    def next(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, frame):
        self.send(frame)
        return self.next()

    def works(self):
        """Have a good call answered, and see that nothing else has been."""
        self._calls += 1
        good = f"good {self._calls}"
        self.send(request(self.era, "tools/call", {"name": "get_workflows", "arguments": {}}, good))
        answer = self.next()
        assert (answer["id"], answer.get("result", {}).get("isError")) == (good, False), answer

    def end(self):
        """Close stdin, and give the lines of the log that are not about the good calls."""
        self.process.stdin.close()
        log = self.process.stderr.read()
        assert self.process.wait(100) == 0
        assert "Traceback" not in log
        return [line for line in log.splitlines() if "get_workflows: ok" not in line]


@pytest.fixture
def stdio(start):
    return lambda era, *arguments: Stdio(start(*arguments), era)


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


ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def told(answer):
    """Return the code and the id of an answer."""
    return answer["error"]["code"], answer["id"]


def says(answer, words):
    error = answer["error"]
    return words in f"{error['message']} {error.get('data')}"


# Over stdio ------------------------------------------------------------------------------------------------------


@ERAS
def test_every_hostile_line_gets_one_answer_and_the_server_goes_on(stdio, era):
    server = stdio(era).open()
    answers = {}
    for name, (frame, *_) in FRAMES.items():
        answers[name] = server.ask(frame)
        server.works()
    assert {name: told(answer) for name, answer in answers.items()} == {
        name: (code, request_id) for name, (_, code, request_id, _) in FRAMES.items()
    }
    assert [name for name, answer in answers.items() if not says(answer, FRAMES[name][3])] == []
    assert server.end() == []


def test_lines_before_the_first_message_are_answered_and_the_handshake_follows(stdio):
    server = stdio("legacy")
    for frame, code, request_id, words in FRAMES.values():
        answer = server.ask(frame)
        assert told(answer) == (code, request_id)
        assert says(answer, words)
    server.open().works()
    assert server.end() == []


@pytest.mark.parametrize("name", ["text", "a batch", "binary", "lists nested deeper than 198"])
def test_a_first_line_that_is_no_message_does_not_decide_the_era(stdio, name):
    server = stdio("modern")
    assert told(server.ask(FRAMES[name][0])) == FRAMES[name][1:3]
    server.works()


def test_a_call_before_the_handshake_is_told_what_comes_first(stdio):
    server = stdio("legacy")
    answer = server.ask(request("legacy", "tools/call", {"name": "get_workflows"}))
    assert told(answer) == (INVALID_PARAMS, "me")
    assert says(answer, "send initialize first")
    server.open().works()


@ERAS
def test_requests_that_nobody_serves_are_refused_by_the_name_of_what_is_wrong(stdio, era):
    server = stdio(era).open()
    answers = {}
    for name, (method, params, *_) in REQUESTS.items():
        answers[name] = server.ask(request(era, method, params))
        server.works()
    assert {name: told(answer) for name, answer in answers.items()} == {
        name: (code, "me") for name, (_, _, code, _) in REQUESTS.items()
    }
    assert [name for name, answer in answers.items() if not says(answer, REQUESTS[name][3])] == []
    assert server.end() == []


@ERAS
def test_frames_that_need_no_answer_get_none_and_confuse_no_request(stdio, era):
    server = stdio(era).open()
    for frame in SILENT.values():
        server.send(frame)
        server.works()
    assert [line for line in server.end() if len(line) > 500] == []


@ERAS
def test_an_answer_has_the_id_of_its_request_whatever_that_is(stdio, era):
    server = stdio(era).open()
    answered = [server.ask(request(era, "no/such", {}, request_id))["id"] for request_id in IDS]
    assert answered == IDS
    assert list(map(type, answered)) == list(map(type, IDS))
    server.works()


@pytest.mark.parametrize("end", [b"\r\n", b"  \n", b"\n\n\n"])
def test_white_space_around_a_message_does_not_matter(stdio, end):
    server = stdio("legacy").open()
    server.send(b" \t" + ping(), end)
    assert server.next() == {"jsonrpc": "2.0", "id": "me", "result": {}}
    server.works()


@pytest.mark.parametrize(
    "line",
    [
        ping(b'{"a":"' + b"x" * MAX_LINE + b'"}'),
        ping(b'{"a":"' + rb"\"" * (MAX_LINE // 2)),
        ping() + b" " * MAX_LINE,
        ping(b"{}") + b"x" * (3 * MAX_LINE),
    ],
    ids=["a long string", "quotes without an end", "white space", "something else"],
)
def test_a_line_of_more_than_16_mib_is_refused_by_its_length(stdio, line):
    server = stdio("legacy").open()
    answer = server.ask(line)
    assert told(answer) == (INVALID_REQUEST, "me")
    assert says(answer, "at most 16,777,216 bytes")
    server.works()
    assert server.end() == []


def test_a_line_of_16_mib_is_read(stdio):
    server = stdio("legacy").open()
    frame = ping(b'{"a":""}')
    frame = ping(b'{"a":"' + b"x" * (MAX_LINE - len(frame)) + b'"}')
    assert len(frame) == MAX_LINE
    assert server.ask(frame)["result"] == {}
    server.works()


def test_calls_that_share_an_id_are_answered_each(stdio):
    server = stdio("legacy").open()
    call = request("legacy", "tools/call", {"name": "get_workflows", "arguments": {}}, 7)
    server.send(b"\n".join([call] * 20))
    assert [server.next()["id"] for _ in range(20)] == [7] * 20
    server.works()


# All at once, and then the end of stdin --------------------------------------------------------------------------


@pytest.fixture
def piped(project):
    """Pipe lines to a server, and read its answers when it has ended."""

    def piped(*lines, end=b"\n"):
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root)]
        result = subprocess.run(command, input=b"\n".join(lines) + end, capture_output=True, check=True, timeout=240)
        assert b"Traceback" not in result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    return piped


@pytest.mark.parametrize("end", [b"\n", b"", b"\n \t"], ids=["a line end", "no line end", "white space"])
@ERAS
def test_what_is_piped_in_is_answered_before_the_end(piped, era, end):
    opening = [] if era == "modern" else [request(era, "initialize", HELLO, "hello")]
    calls = [request(era, "tools/call", {"name": "get_workflows", "arguments": {}}, number) for number in range(50)]
    answers = piped(*opening, *calls, end=end)
    assert sorted(answer["id"] for answer in answers if answer["id"] != "hello") == list(range(50))
    assert all("result" in answer for answer in answers)


def test_calls_that_share_an_id_are_answered_each_before_the_end(piped):
    call = request("modern", "tools/call", {"name": "get_workflows", "arguments": {}}, 7)
    assert [("result" in answer, answer["id"]) for answer in piped(*[call] * 20)] == [(True, 7)] * 20


def test_half_a_line_at_the_end_is_answered(piped):
    [answer] = piped(ping()[:-3], end=b"")
    assert told(answer) == (PARSE_ERROR, "me")


def test_a_mixture_is_answered_line_by_line(piped):
    lines = [b"", *(frame for frame, *_ in FRAMES.values()), request("modern", "no/such", {}, "last")]
    answers = piped(*lines)
    assert len(answers) == len(FRAMES) + 1
    assert answers[-1]["id"] == "last"


# Over HTTP -------------------------------------------------------------------------------------------------------


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


# The reading itself ----------------------------------------------------------------------------------------------


def answer_to(frame):
    """Return the answer to a malformed frame; None to a message."""
    try:
        read_frame(frame)
    except BadFrame as error:
        return json.loads(error.answer().model_dump_json(exclude_unset=True))
    return None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_have_an_answer(frame):
    answer = answer_to(frame)
    assert answer is None or told(answer)[0] in (PARSE_ERROR, INVALID_REQUEST)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), st.just("2.0") | JSON
    )
)
def test_whoever_sends_an_id_and_a_method_gets_an_answer(fields):
    frame = json.dumps(fields).encode()
    try:
        message = read_frame(frame)
    except BadFrame:
        code, answered_id = told(answer_to(frame))
        assert code in (PARSE_ERROR, INVALID_REQUEST)
        if code == INVALID_REQUEST and {"id", "method"} <= fields.keys():
            has_id = isinstance(fields["id"], str | int) and not isinstance(fields["id"], bool)
            assert answered_id == (fields["id"] if has_id else None)
    else:
        assert {"id", "method"} <= message.model_fields_set or not {"id", "method"} <= fields.keys()


def test_mutated_messages_raise_nothing_else():
    whole = request("modern", "tools/call", {"name": "get_workflows", "arguments": {"a": [1, "é", None]}}, 7)
    chance = random.Random(1)
    for _ in range(3000):
        frame = bytearray(whole)
        for _ in range(chance.choice([1, 1, 3, 10])):
            place = chance.randrange(len(frame))
            frame[place : place + chance.choice([0, 1, 1, 5])] = chance.randbytes(chance.choice([0, 1, 1, 5]))
        answer_to(bytes(frame))


def test_looking_for_an_id_takes_no_longer_than_reading():
    """Quotes that begin nothing must not be tried one after the other, each to the end of the frame."""
    began = time.process_time()
    assert told(answer_to(b'{"a":"' + rb"\"" * 500_000)) == (PARSE_ERROR, None)
    assert time.process_time() - began < 5
