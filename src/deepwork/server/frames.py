"""From a frame to a message, and from a frame that is none to the answer it gets.

A frame is a line of stdin or the body of a POST. The SDK drops some of what it cannot read, and the sender waits.
"""

from __future__ import annotations

import re
from typing import Any

import pydantic_core
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData
from mcp_types.jsonrpc import JSONRPCError, JSONRPCMessage, JSONRPCRequest, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

MAX_LINE = 16 * 1024 * 1024

# An id that stands further behind is not looked for in a frame that cannot be read.
_SEARCHED = 64 * 1024
# A string that does not end is a token too, or every quote in it would be tried as the beginning of one.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)


class BadFrame(Exception):
    """A frame that is no message; `request_id` is whom to answer, if that can be known."""

    def __init__(self, code: int, request_id: RequestId | None, text: str) -> None:
        super().__init__(text)
        self._code = code
        self._id = request_id

    def answer(self) -> JSONRPCError:
        """Make the answer."""
        kind = "Parse error" if self._code == PARSE_ERROR else "Invalid request"
        return JSONRPCError(jsonrpc="2.0", id=self._id, error=ErrorData(code=self._code, message=f"{kind}: {self}"))


def read_frame(frame: bytes) -> JSONRPCMessage:
    """Read a message.

    Raises:
        BadFrame: It is none; the error knows what to answer.
    """
    if len(frame) > MAX_LINE:
        raise BadFrame(INVALID_REQUEST, _id_in(frame), f"a message may have at most {MAX_LINE:,} bytes")
    try:
        message = jsonrpc_message_adapter.validate_json(frame, by_name=False)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        if detail["type"] != "json_invalid":
            raise _judge(pydantic_core.from_json(frame)) from None
        why = detail["msg"].removeprefix("Invalid JSON: ")
        raise BadFrame(PARSE_ERROR, _id_in(frame), f"no JSON in UTF-8 that can be read: {why}") from None
    # A request with a wrong field would pass for a notification or a response, which get no answer.
    if not isinstance(message, JSONRPCRequest):
        found = pydantic_core.from_json(frame)
        if {"id", "method"} <= found.keys():
            raise _judge(found)
    return message


def _judge(found: Any) -> BadFrame:
    """Name the field that makes no message of a JSON value."""
    if isinstance(found, list):
        return BadFrame(INVALID_REQUEST, None, "batches are not part of MCP; send one message at a time")
    if not isinstance(found, dict):
        return BadFrame(INVALID_REQUEST, None, "a message is a JSON object")
    if "method" not in found and ("result" in found or "error" in found):
        return BadFrame(INVALID_REQUEST, None, "this is no JSON-RPC response")
    request_id = _as_id(found.get("id"))
    return BadFrame(INVALID_REQUEST, request_id, _wrong_field(found, request_id))


def _wrong_field(found: dict[str, Any], request_id: RequestId | None) -> str:
    if "id" in found and request_id is None:
        return "id: must be a string or an integer"
    if found.get("jsonrpc") != "2.0":
        return 'jsonrpc: must be "2.0"'
    if "method" not in found:
        return "method: is required"
    if not isinstance(found["method"], str):
        return "method: must be a string"
    return "params: must be an object"


def _id_in(frame: bytes) -> RequestId | None:
    """Find the id of a message that cannot be read, so that its sender need not wait."""
    depth = 0
    before: list[bytes] = [b"", b""]
    for match in _TOKEN.finditer(frame[:_SEARCHED]):
        token = match.group()
        if depth == 1 and before == [b'"id"', b":"]:
            try:
                return _as_id(pydantic_core.from_json(token))
            except ValueError:
                return None
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token, 0)
        before = [before[1], token]
    return None


def _as_id(found: Any) -> RequestId | None:
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
