"""What `tools/list` says of the tools, and that the answers keep to it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping

import jsonschema
import pytest
from fastmcp import Client, FastMCP
from mcp import MCPError

from deepwork import hookimpl
from deepwork.api import ResourceSpec, ToolCall, ToolSet, ToolSpec
from deepwork.errors import ArgumentError, PluginError
from deepwork.server.middleware import CallMiddleware
from deepwork.server.tools import add_resource
from deepwork.testing import Refused, output, review, step

pytestmark = pytest.mark.anyio

CORE = ["get_workflows", "start_workflow", "finished_step", "abort_workflow"]


@pytest.fixture
async def tools(project):
    async with project.agent() as agent:
        return {tool.name: tool for tool in await agent.client.list_tools()}


async def test_the_core_offers_the_four_tools(tools):
    assert list(tools) == CORE


@pytest.mark.parametrize(
    ("name", "title", "read_only", "destructive", "idempotent"),
    [
        ("get_workflows", "List workflows", True, False, True),
        ("start_workflow", "Start a workflow", False, False, False),
        ("finished_step", "Report a finished step", False, False, False),
        ("abort_workflow", "Abort a workflow", False, True, False),
    ],
)
async def test_a_tool_says_what_it_does_to_the_world(tools, name, title, read_only, destructive, idempotent):
    hints = tools[name].annotations
    assert tools[name].title == title
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (read_only, destructive, idempotent)
    assert hints.open_world_hint is False


@pytest.mark.parametrize("name", CORE)
async def test_the_four_tools_stay_loaded_in_clients_that_defer_tools(tools, name):
    assert tools[name].meta["anthropic/alwaysLoad"] is True


async def test_the_tools_of_a_plugin_are_marked_as_it_says(project, install):
    install("good")
    async with project.agent(tools=["acme"]) as agent:
        tools = {tool.name: tool for tool in await agent.client.list_tools()}
    assert "anthropic/alwaysLoad" not in (tools["greet"].meta or {})
    assert tools["greet"].annotations.read_only_hint is True
    assert tools["text"].annotations.read_only_hint is False
    assert tools["greet"].description == "Greet a person."


@pytest.fixture
def serve():
    """Make a server of one resource."""

    def serve(uri, fn):
        server = FastMCP("test", mask_error_details=True)
        add_resource(server, ResourceSpec(uri, fn, "sample", "A sample"), CallMiddleware(None))
        return server

    return serve


@pytest.mark.parametrize("uri", ["acme://about", "acme://items/{item}"])
async def test_a_resource_that_wants_what_its_address_does_not_name_is_refused(serve, uri):
    with pytest.raises(PluginError, match="wants 'missing', which is not in the URI"):
        serve(uri, lambda missing: missing)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ArgumentError("no such item", hint="Ask for another."), "Ask for another"),
        (OSError("secret"), "internal error"),
    ],
)
async def test_the_errors_of_a_resource_arrive_in_words(serve, error, words):
    def fail():
        raise error

    async with Client(serve("acme://about", fail)) as client:
        with pytest.raises(MCPError, match=words) as caught:
            await client.read_resource("acme://about")
    assert "secret" not in str(caught.value)


async def test_get_workflows_is_sync_and_the_others_async(project):
    server = project.server()
    functions = {name: (await server.get_tool(name)).fn for name in CORE}
    assert [inspect.iscoroutinefunction(functions[name]) for name in CORE] == [False, True, True, True]


async def test_the_parameters_are_those_of_the_specification_and_the_additional_ones_are_optional(tools):
    required = {name: tools[name].input_schema.get("required", []) for name in CORE}
    assert required == {
        "get_workflows": [],
        "start_workflow": ["goal", "job_name", "workflow_name"],
        "finished_step": ["outputs"],
        "abort_workflow": ["explanation"],
    }
    optional = {name: set(tools[name].input_schema["properties"]) - set(required[name]) for name in CORE}
    assert optional == {
        "get_workflows": set(),
        "start_workflow": {"instance_id", "parent_session_id"},
        "finished_step": {"notes", "quality_review_override_reason", "session_id", "step_id"},
        "abort_workflow": {"session_id"},
    }


def references(schema):
    if isinstance(schema, dict):
        yield from ([schema["$ref"]] if isinstance(schema.get("$ref"), str) else [])
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


@pytest.mark.parametrize("name", CORE)
async def test_every_reference_in_a_schema_leads_somewhere(tools, name):
    for schema in (tools[name].input_schema, tools[name].output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        targets = {f"#/$defs/{key}" for key in schema.get("$defs", {})}
        assert set(references(schema)) <= targets


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_list_is_the_same_at_every_start_and_in_both_eras(project, mode):
    async def listed():
        async with project.agent(mode=mode) as agent:
            return [tool.model_dump(mode="json") for tool in await agent.client.list_tools()]

    first = await listed()
    project.write_job()
    assert await listed() == first
    assert len({json.dumps(await listed()) for _ in range(3)}) == 1


@pytest.fixture
async def checked(project, tools):
    """Call tools, and hold every answer against the schema that was promised for it."""
    project.write(".deepwork/jobs/broken/job.yml", "name: [")
    project.write_job(
        steps=[
            step("a", reviews=[review()], inputs=[{"name": "audience", "description": "Who reads it"}]),
            step("b", dependencies=["a"], inputs=[{"file": "a.md", "from_step": "a"}]),
            step("c"),
            step("d", outputs={"all": output("files"), "maybe": output(required=False)}, reviews=[review("all")]),
        ],
        workflows={"main": ["a", ["b", "c"], "d"]},
    )
    for name in "abcd":
        project.write(f"{name}.md")
    async with project.agent() as agent:

        async def checked(tool, **arguments):
            answer = await agent.client.call_tool(tool, arguments)
            jsonschema.validate(answer.structured_content, tools[tool].output_schema)
            assert json.loads(answer.content[0].text) == answer.structured_content
            assert len(answer.content) == 1
            return answer.structured_content

        yield checked


async def test_real_answers_fit_the_schemas_that_were_promised(checked):
    listing = await checked("get_workflows")
    assert [len(listing["errors"]), listing["jobs"][0]["name"]] == [1, "demo"]
    where = {"job_name": "demo", "workflow_name": "main"}
    started = await checked("start_workflow", goal="g", **where)
    assert started["begin_step"].get("step_inputs", [])[0]["name"] == "audience"
    outputs = {"outputs": {"a.md": "a.md"}}
    assert (await checked("finished_step", **outputs))["status"] == "needs_work"
    group = await checked("finished_step", quality_review_override_reason="passed", **outputs)
    assert [member["step_id"] for member in group["begin_step"].get("concurrent_steps", [])] == ["c"]
    await checked("finished_step", outputs={"c.md": "c.md"}, step_id="c")
    await checked("finished_step", outputs={"b.md": "b.md"})
    nested = await checked("start_workflow", goal="g", **where)
    aborted = await checked("abort_workflow", explanation="enough", session_id=nested["begin_step"]["session_id"])
    assert aborted["resumed_step"] == "d"
    reply = await checked("finished_step", outputs={"all": ["d.md"]}, quality_review_override_reason="passed")
    assert (reply["status"], reply["all_outputs"]["all"]) == ("workflow_complete", ["d.md"])


async def test_fields_of_an_answer_that_say_nothing_are_left_out_as_its_schema_allows(checked):
    await checked("start_workflow", goal="g", job_name="demo", workflow_name="main")
    answer = await checked("finished_step", outputs={"a.md": "a.md"})
    assert answer.keys() == {"status", "feedback", "stack"}


async def test_jobs_that_have_not_changed_are_written_once_and_sessions_each_time(project):
    """The text of a reply is its structure, also where parts were kept from the reply before."""
    project.write_job("first")
    project.write_job("second")
    async with project.agent() as agent:
        await agent.start(job="first")
        replies = [await agent.client.call_tool_mcp("get_workflows", {})]
        await agent.start(job="second")
        replies.append(await agent.client.call_tool_mcp("get_workflows", {}))
        (project.jobs / "second" / "job.yml").write_text("nonsense: 1\n")
        replies.append(await agent.client.call_tool_mcp("get_workflows", {}))
    for reply in replies:
        assert json.loads(reply.content[0].text) == reply.structured_content
        assert [*json.loads(reply.content[0].text)][:2] == ["jobs", "errors"]
    counts = [
        (len(reply.structured_content["active_sessions"]), len(reply.structured_content["errors"])) for reply in replies
    ]
    assert counts == [(1, 0), (2, 0), (2, 1)]


class _Letter:
    """Something that agents cannot send."""


async def _post(letter: _Letter, /, to: str, copies: int = 1, note: str | None = None) -> dict[str, object]:
    """Post a letter."""
    return {"letter": letter, "to": to, "copies": copies, "note": note}


async def _post_by_hand(call: ToolCall, arguments: Mapping[str, object]) -> dict[str, object]:
    values = dict(arguments)
    request_id = values.pop("request_id")
    return await _post("a letter", **values) | {"request_id": request_id, "by": call.principal}


class _PostOffice:
    @hookimpl
    def deepwork_tool_sets(self, context, engine):
        spec = ToolSpec("post", _post, title="Post", run=_post_by_hand, nullable=True, repeatable=True)
        yield ToolSet(name="post", tools=[spec])


async def test_what_a_function_takes_before_a_slash_is_filled_by_what_runs_it_and_hidden_from_agents(project):
    async with project.agent(tools=["post"], extra_plugins={"post": _PostOffice()}) as agent:
        [tool] = await agent.client.list_tools()
        assert await agent.call("post", to="ada") == {
            "letter": "a letter",
            "to": "ada",
            "copies": 1,
            "note": None,
            "request_id": None,
            "by": "local",
        }
        assert (await agent.call("post", to="ada", request_id="r1"))["request_id"] == "r1"
    properties = tool.input_schema["properties"]
    assert list(properties) == ["to", "copies", "note", "request_id"]
    assert tool.input_schema["required"] == ["to"]
    assert tool.description == "Post a letter."


async def test_null_means_left_out_where_a_tool_is_nullable_and_its_schema_does_not_say_so(project):
    async with project.agent(tools=["post"], extra_plugins={"post": _PostOffice()}) as agent:
        [tool] = await agent.client.list_tools()
        assert (await agent.call("post", to="ada", copies=None, note=None))["copies"] == 1
        with pytest.raises(Refused, match="to: "):
            await agent.call("post", to=None)
    assert "null" not in json.dumps(tool.input_schema)
    assert tool.input_schema["properties"]["copies"]["default"] == 1
