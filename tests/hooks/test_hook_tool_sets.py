from __future__ import annotations

import json

import pytest

from deepwork import __version__
from deepwork.errors import NameClash, PluginLoadError
from deepwork.loading.selection import by_name

pytestmark = pytest.mark.anyio


def test_sets_are_collected_and_attributed(ask):
    provided = ask("tool_sets", "good", engine=None)
    assert sorted((tool_set.item.name, str(tool_set.by)) for tool_set in provided) == [
        ("acme", "acme-tracker 2.1 (plugin 'acme')"),
        ("core", f"deepwork {__version__} (feature 'workflow_tools')"),
    ]


def test_two_sets_of_one_name_clash(ask):
    with pytest.raises(NameClash, match="tool set 'acme' is offered twice"):
        by_name("tool set", ask("tool_sets", "good", "clash_set", engine=None), lambda tool_set: tool_set.name)


def test_a_plugin_that_gives_nothing_to_iterate_over_is_named(ask):
    with pytest.raises(PluginLoadError) as error:
        ask("tool_sets", "raising_everywhere", engine=None)
    assert error.value.message == (
        "deepwork-raising-everywhere 0.17 (plugin 'raising_everywhere'): hook deepwork_tool_sets failed: "
        "it returned one int; `yield` it or return a list (raising_everywhere/__init__.py, line 23)"
    )


def test_an_async_hook_is_refused_and_no_coroutine_is_left(ask):
    with pytest.raises(PluginLoadError, match="the hook is async"):
        ask("tool_sets", "asynchook", engine=None)


@pytest.fixture
async def agent(project, ask):
    ask("tool_sets", "good", engine=None)
    async with project.agent() as agent:
        yield agent


async def test_a_tool_that_gives_a_model_answers_with_its_fields(agent):
    assert await agent.call("acme_greet", name="Ada") == {"text": "hello Ada", "principal": "local", "to": []}


async def test_a_tool_that_gives_a_mapping_answers_with_it(agent):
    assert (await agent.call("acme_where"))["principal"] == "local"


async def test_a_sync_tool_runs_in_a_thread_of_its_own_and_still_knows_its_call(agent):
    answer = await agent.call("acme_where")
    assert answer["thread"] != "MainThread"


async def test_a_tool_that_gives_text_answers_with_the_bare_text(agent):
    answer = await agent.client.call_tool("acme_text")
    assert ([block.text for block in answer.content], answer.structured_content) == (["plain text"], None)


@pytest.mark.parametrize(("tool", "value"), [("acme_nothing", []), ("acme_jobs", 3)])
async def test_a_tool_that_gives_json_answers_with_one_text_block_even_for_an_empty_list(agent, tool, value):
    answer = await agent.client.call_tool(tool)
    assert answer.structured_content is None
    assert [json.loads(block.text) for block in answer.content] == [value]


async def test_the_call_parameter_is_hidden_from_agents_and_the_rest_is_not(agent):
    tools = {tool.name: tool for tool in await agent.client.list_tools()}
    assert tools["acme_greet"].input_schema["properties"] == {
        "name": {"description": "Whom to greet", "type": "string"}
    }
    assert tools["acme_where"].input_schema["properties"] == {}


async def test_a_call_parameter_cannot_be_given_by_an_agent(agent):
    assert "call: is not a parameter" in await agent.refused("acme_where", call={})


async def test_an_expected_error_of_a_tool_reaches_the_agent_with_its_hint(agent):
    assert await agent.refused("acme_refuse") == "not today\nCome back tomorrow."


async def test_resources_can_be_read(agent):
    about = await agent.client.read_resource("acme://about")
    assert [block.text for block in about] == ["All about Acme"]


async def test_a_resource_template_takes_names_from_its_address_and_knows_the_call(agent):
    item = await agent.client.read_resource("acme://items/anvil")
    assert [(block.text, block.mime_type) for block in item] == [("anvil for local", "text/markdown")]


async def test_the_resources_of_a_set_that_is_not_served_are_not_there(project, ask):
    ask("tool_sets", "good", engine=None)
    async with project.agent(tools=["core"]) as agent:
        assert [str(resource.uri) for resource in await agent.client.list_resources()] == []
