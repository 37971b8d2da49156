"""Plugins of one server share objects, and a tool set brings prompts beside its tools."""

from contextlib import asynccontextmanager
from types import ModuleType

import anyio
import pytest

from deepwork import hookimpl
from deepwork.api import PromptSpec, ToolSet, ToolSpec
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(project):
    """Make a server with plugins that are functions: each gets its context and gives a tool set."""

    def server(**makers):
        def candidate(name, make):
            module = ModuleType(name)

            @hookimpl
            def deepwork_tool_sets(context):
                yield make(context)

            module.deepwork_tool_sets = deepwork_tool_sets
            return Candidate(name, f"deepwork-{name}", "1.0", lambda: module)

        own = [candidate for candidate in installed() if candidate.builtin]
        foreign = [candidate(name, make) for name, make in makers.items()]
        return project.server(plugins=PluginManager(candidates=[*own, *foreign]))

    return server


@pytest.fixture
def events():
    return []


@pytest.fixture
def opener(events):
    """Return a function that opens an object by its name, and records when it is opened and closed."""

    def opener(name):
        @asynccontextmanager
        async def open_():
            await anyio.sleep(0.01)
            events.append(f"open {name}")
            yield f"the {name}"
            events.append(f"close {name}")

        return open_

    return opener


def asking(key, opener, tool):
    def make(context):
        async def ask() -> str:
            """Ask for the shared object."""
            return await context.shared(key, opener(key))

        return ToolSet(tool, [ToolSpec(tool, ask, title="Ask", output="text")])

    return make


async def test_all_plugins_get_one_object_of_a_key_opened_at_its_first_use(project, server, opener, events):
    project_server = server(one=asking("engine", opener, "first"), two=asking("engine", opener, "second"))
    assert events == []
    async with project.agent(project_server) as agent:
        async with anyio.create_task_group() as tasks:
            for tool in ("first", "second", "first"):
                tasks.start_soon(agent.client.call_tool, tool)
        result = await agent.client.call_tool("second")
        assert result.content[0].text == "the engine"
        assert events == ["open engine"]
    assert events == ["open engine", "close engine"]


async def test_shared_objects_are_closed_in_reverse_order_with_the_server(project, server, opener, events):
    project_server = server(one=asking("engine", opener, "first"), two=asking("client", opener, "second"))
    async with project.agent(project_server) as agent:
        await agent.client.call_tool("first")
        await agent.client.call_tool("second")
    assert events == ["open engine", "open client", "close client", "close engine"]


async def test_a_tool_set_brings_prompts(project, server):
    def greet(name: str) -> str:
        """Ask to greet a person."""
        return f"Greet {name}."

    project_server = server(
        one=lambda _: ToolSet("polite", [], prompts=[PromptSpec("greet", greet, "Greets somebody")])
    )
    async with project.agent(project_server) as agent:
        [prompt] = [prompt for prompt in await agent.client.list_prompts() if prompt.name == "greet"]
        assert prompt.description == "Greets somebody"
        answer = await agent.client.get_prompt("greet", {"name": "Ada"})
        assert answer.messages[0].content.text == "Greet Ada."
