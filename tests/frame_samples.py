"""Malformed frames and odd messages with their answers, for the tests of every transport."""

from __future__ import annotations

import json

import pytest

from deepwork.testing.wire import ENVELOPE

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


ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def told(answer):
    """Return the code and the id of an answer."""
    return answer["error"]["code"], answer["id"]


def says(answer, words):
    error = answer["error"]
    return words in f"{error['message']} {error.get('data')}"
