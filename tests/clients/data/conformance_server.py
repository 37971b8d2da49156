"""What the conformance suite asks of a server, registered beside our tools and served by our own HTTP stack.

python conformance_server.py PROJECT
"""

from __future__ import annotations

import base64
import json
import sys

import anyio
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message, PromptResult
from fastmcp.utilities.types import Audio, Image
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

from deepwork.builtin.http.app import run_http
from deepwork.builtin.http.listen import ListenOptions
from deepwork.cli.logs import set_up_logging
from deepwork.ports.records import Serving
from deepwork.server import create_server
from deepwork.server.frames import refusal_of

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = (
    b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data"
)
SILENCE = WAV + b"\x00\x00\x00\x00"
MOMENT = 0.05

server = create_server(sys.argv[1])


def embedded(uri, mime_type, text):
    content = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=content)


# Tools -----------------------------------------------------------------------------------------------------------


@server.tool(output_schema=None)
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool(output_schema=None)
def test_image_content() -> Image:
    """Return an image."""
    return Image(data=PNG, format="png")


@server.tool(output_schema=None)
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(data=SILENCE, format="wav")


@server.tool(output_schema=None)
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@server.tool(output_schema=None)
def test_multiple_content_types() -> list:
    """Return a text, an image and a resource."""
    data = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return ["Multiple content types test:", Image(data=PNG, format="png"), data]


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three times."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await anyio.sleep(MOMENT)
    return "done"


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log once."""
    await ctx.info("logged")
    return "done"


@server.tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress."""
    for percent in (0, 50, 100):
        await ctx.report_progress(percent, 100)
        await anyio.sleep(MOMENT)
    return "done"


@server.tool
def test_missing_capability(ctx: Context) -> str:
    """Want a client that can sample."""
    if ctx.session.client_capabilities is None or ctx.session.client_capabilities.sampling is None:
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client that can sample", data)
    return "done"


@server.tool
def test_streaming_elicitation() -> InputRequiredResult:
    """Ask for a name."""
    return ask(user_name=NAME)


# Tools that ask the client, in the handshake era -----------------------------------------------------------------


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Have the client's model answer."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {answer.content.text}"


async def form(ctx, message, required=(), **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    answer = await ctx.session.elicit(message, schema, related_request_id=ctx.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask for a name and an address."""
    username = {"type": "string", "description": "User's response"}
    email = {"type": "string", "description": "User's email address"}
    answer = await form(ctx, message, ["username", "email"], username=username, email=email)
    return f"User response: {answer}"


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default of each kind."""
    answer = await form(
        ctx,
        "Look at the defaults",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return f"Elicitation completed: {answer}"


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with a choice of each kind."""
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
    answer = await form(
        ctx,
        "Choose",
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": options}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return f"Elicitation completed: {answer}"


# Tools that ask the client, from 2026-07-28 on -------------------------------------------------------------------


def elicitation(message, name, kind="string"):
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text, max_tokens):
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))


NAME = elicitation("What is your name?", "name")
ROOTS = ListRootsRequest()


def ask(state=None, **requests):
    return InputRequiredResult(input_requests=requests, request_state=state)


def answered(ctx, name, kind=ElicitResult):
    """What the client has answered, if it has, and in the right form."""
    answer = (ctx.input_responses or {}).get(name)
    return answer if isinstance(answer, kind) else None


@server.tool
def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name."""
    answer = answered(ctx, "user_name")
    if answer is None or not answer.content or "name" not in answer.content:
        return ask(user_name=NAME)
    return f"Hello, {answer.content['name']}!"


@server.tool
def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    """Have the client's model answer."""
    answer = answered(ctx, "capital_question", CreateMessageResult)
    return answer.content.text if answer else ask(capital_question=sampling("What is the capital of France?", 100))


@server.tool
def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    """Ask for the roots."""
    answer = answered(ctx, "client_roots", ListRootsResult)
    return ", ".join(str(root.uri) for root in answer.roots) if answer else ask(client_roots=ROOTS)


@server.tool
def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """Ask, and want the state back."""
    if answered(ctx, "confirm") and ctx.request_state == "the state":
        return "state-ok"
    return ask("the state", confirm=elicitation("Please confirm", "ok", "boolean"))


@server.tool
def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
    """Ask, and take only the state that was given."""
    return test_input_required_result_request_state(ctx)


@server.tool
def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
    """Ask for three things at once."""
    if {"user_name", "greeting", "client_roots"} <= set(ctx.input_responses or {}):
        return "done"
    return ask("the state", user_name=NAME, greeting=sampling("Generate a greeting", 50), client_roots=ROOTS)


@server.tool
def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    """Ask twice."""
    if ctx.request_state == "asked twice":
        return "done"
    if ctx.request_state == "asked once":
        return ask("asked twice", step2=elicitation("Step 2: What is your favorite color?", "color"))
    return ask("asked once", step1=elicitation("Step 1: What is your name?", "name"))


@server.tool
def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
    """Ask only for what the client can do."""
    can = ctx.session.client_capabilities
    requests = {}
    if can and can.elicitation:
        requests["user_name"] = NAME
    if can and can.sampling:
        requests["greeting"] = sampling("Generate a greeting", 50)
    return ask(**requests) if requests and not ctx.input_responses else "done"


# Resources and prompts -------------------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Return a text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """Return an image."""
    return PNG


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 - as the suite names it
    """Return the data of an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt
def test_simple_prompt() -> str:
    """Return a text."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Return the arguments in a text."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> PromptResult:  # noqa: N803 - as the suite names it
    """Show a resource."""
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return PromptResult([Message(resource), Message("Please process the embedded resource above.")])


@server.prompt
def test_prompt_with_image() -> PromptResult:
    """Show an image."""
    image = Image(data=PNG, format="png").to_image_content()
    return PromptResult([Message(image), Message("Please analyze the image above.")])


@server.prompt
def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """Ask for a context."""
    answer = answered(ctx, "user_context")
    return (
        str(answer.content)
        if answer
        else ask(user_context=elicitation("What context should the prompt use?", "context"))
    )


@server.completion
def complete(ref, argument, context):
    return [city for city in ("paris", "park", "party") if city.startswith(argument.value)]


if __name__ == "__main__":
    set_up_logging("info", None)
    run_http(Serving(server=server, apps=list, refusal=refusal_of), "http", ListenOptions(port=0))
