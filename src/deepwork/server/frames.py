"""Reads a frame as a message of JSON-RPC, or returns the error that answers a malformed frame.

A frame is a line of stdin or the body of a POST. The SDK drops some frames that it cannot read, so that the sender
would wait forever.
"""

from __future__ import annotations

import re
from typing import Any

import pydantic_core
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData
from mcp_types.jsonrpc import JSONRPCError, JSONRPCMessage, JSONRPCRequest, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

MAX_LINE = 16 * 1024 * 1024

# Only the first 64 KiB of an unreadable frame are searched for its id.
_SEARCHED = 64 * 1024
# A string without an end is one token; otherwise the search would start again at each of its quotes.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)


class BadFrame(Exception):
    """A frame that is not a message; `request_id` is its id, or None if that cannot be read."""

    def __init__(self, code: int, request_id: RequestId | None, text: str) -> None:
        super().__init__(text)
        self._code = code
        self._id = request_id

    def answer(self) -> JSONRPCError:
        """Build the error that answers the frame."""
        kind = "Parse error" if self._code == PARSE_ERROR else "Invalid request"
        return JSONRPCError(jsonrpc="2.0", id=self._id, error=ErrorData(code=self._code, message=f"{kind}: {self}"))


def read_frame(frame: bytes) -> JSONRPCMessage:
    """Read a message.

    Raises:
        BadFrame: The frame is not a message; the error has the answer.
    """
    if len(frame) > MAX_LINE:
        raise BadFrame(INVALID_REQUEST, _id_in(frame), f"a message may have at most {MAX_LINE:,} bytes")
    try:
        message = jsonrpc_message_adapter.validate_json(frame, by_name=False)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        if detail["type"] != "json_invalid":
            raise _bad_frame(pydantic_core.from_json(frame)) from None
        reason = detail["msg"].removeprefix("Invalid JSON: ")
        raise BadFrame(PARSE_ERROR, _id_in(frame), f"not valid JSON in UTF-8: {reason}") from None
    # The SDK reads a request with an invalid field as a notification or a response, and would not answer it.
    if not isinstance(message, JSONRPCRequest):
        value = pydantic_core.from_json(frame)
        if {"id", "method"} <= value.keys():
            raise _bad_frame(value)
    return message


def refusal_of(frame: bytes) -> str | None:
    """Return the JSON that answers a frame which is not a message; None for a message."""
    try:
        read_frame(frame)
    except BadFrame as error:
        return error.answer().model_dump_json(exclude_unset=True)
    return None


def _bad_frame(value: Any) -> BadFrame:
    """Return the error of a JSON value that is not a message."""
    if isinstance(value, list):
        return BadFrame(INVALID_REQUEST, None, "batches are not part of MCP; send one message at a time")
    if not isinstance(value, dict):
        return BadFrame(INVALID_REQUEST, None, "a message is a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return BadFrame(INVALID_REQUEST, None, "this is not a JSON-RPC response")
    request_id = _as_id(value.get("id"))
    return BadFrame(INVALID_REQUEST, request_id, _invalid_field(value, request_id))


def _invalid_field(message: dict[str, Any], request_id: RequestId | None) -> str:
    if "id" in message and request_id is None:
        return "id: must be a string or an integer"
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc: must be "2.0"'
    if "method" not in message:
        return "method: is required"
    if not isinstance(message["method"], str):
        return "method: must be a string"
    return "params: must be an object"


def _id_in(frame: bytes) -> RequestId | None:
    """Find the id of a message that cannot be read, so that its sender gets an answer."""
    depth = 0
    previous: list[bytes] = [b"", b""]
    for match in _TOKEN.finditer(frame[:_SEARCHED]):
        token = match.group()
        if depth == 1 and previous == [b'"id"', b":"]:
            try:
                return _as_id(pydantic_core.from_json(token))
            except ValueError:
                return None
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token, 0)
        previous = [previous[1], token]
    return None


def _as_id(value: Any) -> RequestId | None:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None
