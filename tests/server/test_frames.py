"""Malformed frames, or messages out of order: each gets the one answer that it is owed, and the server goes on.

The frames come as lines of stdin, in both eras of the protocol and before any.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwork.server.frames import MAX_LINE, BadFrame, read_frame
from deepwork.testing.wire import HELLO, PATIENCE
from frame_samples import (
    ERAS,
    FRAMES,
    IDS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    REQUESTS,
    SILENT,
    ping,
    request,
    says,
    told,
)


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


# What is not answered within half a second after the end of stdin is dropped, which is long for quick machines alone.
PATIENT = f"""
from deepwork.programs import pending_calls, process_end
pending_calls.DRAIN_SECONDS = process_end.END_SECONDS = {PATIENCE}
from deepwork.cli.main import run
run()
"""


@pytest.fixture
def piped(project):
    """Pipe lines to a server, and read its answers when it has ended."""

    def piped(*lines, end=b"\n"):
        command = [sys.executable, "-c", PATIENT, "serve", "--path", str(project.root)]
        result = subprocess.run(
            command, input=b"\n".join(lines) + end, capture_output=True, check=True, timeout=PATIENCE
        )
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
    message = request("modern", "tools/call", {"name": "get_workflows", "arguments": {"a": [1, "é", None]}}, 7)
    chance = random.Random(1)
    for _ in range(3000):
        frame = bytearray(message)
        for _ in range(chance.choice([1, 1, 3, 10])):
            place = chance.randrange(len(frame))
            frame[place : place + chance.choice([0, 1, 1, 5])] = chance.randbytes(chance.choice([0, 1, 1, 5]))
        answer_to(bytes(frame))


def test_looking_for_an_id_takes_no_longer_than_reading():
    """Quotes that begin nothing must not be tried one after the other, each to the end of the frame."""
    began = time.process_time()
    assert told(answer_to(b'{"a":"' + rb"\"" * 500_000)) == (PARSE_ERROR, None)
    assert time.process_time() - began < 5
