"""Questions to the person at the client, in both eras of the protocol."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from fastmcp.exceptions import ToolError
from fastmcp.server.context import Context
from mcp.shared.exceptions import MCPError
from mcp_types import ClientCapabilities, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from deepwork.ports.call import Ask


class AnswerNeeded(Exception):
    """The call ends here with a question; the client repeats it with the answer."""

    def __init__(self, question: InputRequiredResult) -> None:
        super().__init__("the client has to ask its user")
        self.question = question


def asker(context: Context | None) -> Ask | None:
    """Return the function that asks the client's user; None if the client does not offer that."""
    request = context.request_context if context else None
    if context is None or request is None:
        return None
    if not _offers_forms(request.session.client_capabilities):
        return None
    is_modern = request.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(question: str, name: str, schema: Mapping[str, Any]) -> Any:
        form = {"type": "object", "properties": {name: schema}, "required": [name]}
        result = _answer(context, question, form) if is_modern else await _push(context, question, form)
        return _content(result).get(name)

    return ask


def _offers_forms(capabilities: ClientCapabilities | None) -> bool:
    """True if a client shows its user forms: so does a client that offers elicitation without naming a kind."""
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def _push(context: Context, question: str, form: dict[str, Any]) -> Any:
    """Send a request of our own, and wait for its answer."""
    try:
        return await context.session.elicit(
            message=question, requested_schema=form, related_request_id=context.request_id
        )
    except MCPError as error:
        raise ToolError(f"The client could not ask its user: {error}", log_level=logging.DEBUG) from None


def _answer(context: Context, question: str, form: dict[str, Any]) -> Any:
    """Read the answer that came with the call, or end the call with the question.

    The state is sealed by the SDK. It binds an answer to its question: a call that brings an answer to a question that
    was never asked is asked.
    """
    key = hashlib.sha256(json.dumps([question, form]).encode()).hexdigest()
    responses = context.input_responses or {}
    if context.request_state == key and key in responses:
        return responses[key]
    params = ElicitRequestFormParams(message=question, requested_schema=form)
    raise AnswerNeeded(InputRequiredResult(input_requests={key: ElicitRequest(params=params)}, request_state=key))


def _content(result: Any) -> Mapping[str, Any]:
    """Return the values of the form; none if the user has declined or cancelled."""
    is_accepted = isinstance(result, ElicitResult) and result.action == "accept"
    return (result.content or {}) if is_accepted else {}
