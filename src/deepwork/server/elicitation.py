"""Questions to the person at the client, and pages for them to open, in both eras of the protocol."""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Mapping
from typing import Any

import anyio
from fastmcp.exceptions import ToolError
from fastmcp.server.context import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from deepwork.ports.call import Ask, Show

# So long a call waits for a user who is asked to open a page. Its answer does not depend on what they do.
SHOW_SECONDS = 30.0

log = logging.getLogger("deepwork.server")


class AnswerNeeded(Exception):
    """The call ends here with a question; the client repeats it with the answer."""

    def __init__(self, question: InputRequiredResult) -> None:
        super().__init__("the client has to ask its user")
        self.question = question


def asker(context: Context | None) -> Ask | None:
    """Return the function that asks the client's user; None if the client does not offer that.

    A client that offers elicitation without naming a kind shows forms.
    """
    elicitation = _elicitation(context)
    if context is None or elicitation is None or not (elicitation.form is not None or elicitation.url is None):
        return None

    async def ask(question: str, name: str, schema: Mapping[str, Any]) -> Any:
        form = {"type": "object", "properties": {name: schema}, "required": [name]}
        if _is_modern(context):
            result = _answer(context, ElicitRequestFormParams(message=question, requested_schema=form))
        else:
            result = await _push(context, question, form)
        return _content(result).get(name)

    return ask


def shower(context: Context | None) -> Show | None:
    """Return the function that has the client's user open a page; None if the client does not offer that."""
    elicitation = _elicitation(context)
    if context is None or elicitation is None or elicitation.url is None:
        return None

    async def show(text: str, address: str) -> None:
        if _is_modern(context):
            _answer(context, ElicitRequestURLParams(message=text, url=address))
        else:
            await _push_address(context, text, address)

    return show


def _elicitation(context: Context | None) -> ElicitationCapability | None:
    request = context.request_context if context else None
    capabilities = request.session.client_capabilities if request else None
    return capabilities.elicitation if capabilities else None


def _is_modern(context: Context) -> bool:
    request = context.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _push(context: Context, question: str, form: dict[str, Any]) -> Any:
    """Send a request of our own, and wait for its answer."""
    try:
        return await context.session.elicit(
            message=question, requested_schema=form, related_request_id=context.request_id
        )
    except MCPError as error:
        raise ToolError(f"The client could not ask its user: {error}", log_level=logging.DEBUG) from None


async def _push_address(context: Context, text: str, address: str) -> None:
    """Send the address, and wait a while for the client's answer, which changes nothing."""
    try:
        with anyio.move_on_after(SHOW_SECONDS):
            await context.session.elicit_url(text, address, uuid.uuid4().hex, related_request_id=context.request_id)
    except Exception:
        # For instance the client has no handler for it. The call itself must not fail because of it.
        log.debug("the client did not show a page", exc_info=True)


def _answer(context: Context, params: ElicitRequestFormParams | ElicitRequestURLParams) -> Any:
    """Read the answer that came with the call, or end the call with the question.

    The state is sealed by the SDK. It binds an answer to its question: a call that brings an answer to a question that
    was never asked is asked.
    """
    key = hashlib.sha256(params.model_dump_json().encode()).hexdigest()
    responses = context.input_responses or {}
    if context.request_state == key and key in responses:
        return responses[key]
    raise AnswerNeeded(InputRequiredResult(input_requests={key: ElicitRequest(params=params)}, request_state=key))


def _content(result: Any) -> Mapping[str, Any]:
    """Return the values of the form; none if the user has declined or cancelled."""
    is_accepted = isinstance(result, ElicitResult) and result.action == "accept"
    return (result.content or {}) if is_accepted else {}
