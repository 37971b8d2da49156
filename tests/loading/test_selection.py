"""Names that are chosen: sets, stores and runners, canonical names and prefixes."""

from __future__ import annotations

import pytest

from deepwork.errors import ConfigError, PluginError, UnknownName
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import Provided
from deepwork.loading.selection import choose_tool_sets
from deepwork.ports.records import ToolSet

pytestmark = pytest.mark.anyio


@pytest.fixture
def tool_names(project):
    async def tool_names(**options):
        return [tool.name for tool in await project.server(**options).list_tools()]

    return tool_names


ACME = ["greet", "where", "text", "nothing", "gate", "jobs", "refuse", "crash", "wait"]
CORE = ["get_workflows", "start_workflow", "finished_step", "abort_workflow"]


async def test_every_installed_set_is_served_unless_some_are_chosen(install, tool_names):
    install("good", "noisy")
    assert set(await tool_names()) == {*CORE, *(f"acme_{name}" for name in ACME), "shout"}
    assert set(await tool_names(tools=["core", "noisy"])) == {*CORE, "shout"}


async def test_a_set_that_is_served_alone_has_its_canonical_names(install, tool_names):
    install("good")
    assert await tool_names(tools=["acme"]) == ACME


async def test_a_set_that_declares_a_prefix_has_it_beside_others(install, tool_names):
    install("good")
    assert await tool_names(tools=["acme", "core"]) == [f"acme_{name}" for name in ACME] + CORE


async def test_the_configuration_decides_on_a_prefix(project, install, tool_names):
    install("good")
    project.write(".deepwork/config.yml", "tools: {prefix: {acme: x-, core: deepwork_}}")
    names = await tool_names()
    assert "x-greet" in names
    assert "deepwork_start_workflow" in names
    assert await tool_names(tools=["acme"]) == [f"x-{name}" for name in ACME]


async def test_an_empty_prefix_in_the_configuration_takes_the_declared_one_away(project, install, tool_names):
    install("good")
    project.write(".deepwork/config.yml", 'tools: {prefix: {acme: ""}}')
    assert "greet" in await tool_names()


async def test_the_configuration_chooses_sets_and_the_argument_wins(project, install, tool_names):
    install("good")
    project.write(".deepwork/config.yml", "tools: {sets: [acme]}")
    assert await tool_names() == ACME
    assert await tool_names(tools=["core"]) == CORE


async def test_a_set_is_served_once_however_often_it_is_named(tool_names):
    assert await tool_names(tools=["core", "core"]) == CORE


async def test_a_subset_is_served_without_the_other_tools_of_its_set(project, install, tool_names):
    install("good")
    assert await tool_names(tools=["acme:reader"]) == ["where", "text"]
    assert await tool_names(tools=["acme:reader", "core"]) == ["acme_where", "acme_text", *CORE]
    project.write(".deepwork/config.yml", "tools: {sets: ['acme:greeter']}")
    assert await tool_names() == ["greet"]


async def test_two_subsets_of_a_set_are_joined_and_the_whole_set_has_both(install, tool_names):
    install("good")
    assert await tool_names(tools=["acme:reader", "acme:greeter"]) == ["greet", "where", "text"]
    assert await tool_names(tools=["acme:reader", "acme"]) == ACME


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme:x", "no subset of the tool set 'acme' 'x' (from --tools or tools.sets); available: reader, greeter"),
        ("core:x", "no subset of the tool set 'core' 'x' (from --tools or tools.sets); available: none"),
        ("nobody:x", "no tool set 'nobody' (from --tools or tools.sets); available: acme, core"),
    ],
)
def test_an_unknown_subset_is_refused_with_those_that_there_are(project, install, name, message):
    install("good")
    with pytest.raises(UnknownName) as error:
        project.server(tools=[name])
    assert error.value.message == message


def test_a_subset_with_a_tool_that_its_set_does_not_have_is_refused():
    provided = Provided(ToolSet("acme", [], subsets={"all": ["greet"]}), Candidate("acme", "acme-tracker", "1", object))
    with pytest.raises(PluginError, match="a subset of the tool set 'acme' has no tool 'greet'"):
        choose_tool_sets(["acme:all"], {"acme": provided}, option="--tools")


def test_an_unknown_tool_set_is_refused_with_those_that_there_are(project, install):
    install("good")
    with pytest.raises(UnknownName) as error:
        project.server(tools=["core", "acmee"])
    assert error.value.message == "no tool set 'acmee' (from --tools or tools.sets); available: acme, core"
    assert error.value.hint == "Choose one of these with --tools or tools.sets."


def test_choosing_no_tool_set_is_refused_with_those_that_there_are(project):
    with pytest.raises(ConfigError) as error:
        project.server(tools=[])
    assert (error.value.message, error.value.hint) == ("no tool set is chosen", "Choose from: core.")


def test_an_unknown_store_is_refused_with_those_that_there_are(project, install):
    install("good")
    with pytest.raises(UnknownName) as error:
        project.server(state_store="sqlite")
    assert (
        error.value.message
        == "no state store 'sqlite' (from --state-store or state.store); available: acme, json, memory"
    )


def test_an_unknown_runner_is_refused_with_those_that_there_are(project, install):
    install("good")
    with pytest.raises(UnknownName) as error:
        project.server(external_runner="acmee")
    assert (
        error.value.message
        == "no review runner 'acmee' (from --external-runner or quality_gate.runner); available: acme, person, self"
    )


@pytest.mark.parametrize(
    ("options", "distribution"),
    [({"external_runner": "claude"}, "deepwork-claude-runner"), ({"tools": ["review"]}, "deepwork-review")],
)
def test_a_part_of_this_project_that_is_not_installed_is_named_by_its_distribution(project, options, distribution):
    with pytest.raises(UnknownName) as error:
        project.server(**options)
    assert error.value.hint == f"Install the distribution {distribution}."


def test_a_missing_runner_does_not_matter_where_the_gate_is_off(project):
    assert project.server(enable_quality_gate=False, external_runner="claude").name == "deepwork"


def test_a_selection_that_a_broken_plugin_might_offer_names_that_plugin(project, install):
    install("importerror")
    with pytest.raises(UnknownName) as error:
        project.server(state_store="broken")
    assert error.value.message.splitlines() == [
        "no state store 'broken' (from --state-store or state.store); available: json, memory",
        "deepwork-broken-import 0.3 (plugin 'broken') might offer it, but could not be loaded: "
        "ModuleNotFoundError: No module named 'a_module_that_nobody_has' (broken_import/__init__.py, line 3)",
    ]


async def test_a_plugins_store_keeps_the_sessions_when_it_is_chosen(project, install):
    install("good")
    project.write_job()
    project.write("a.md")
    async with project.agent(state_store="acme", tools=["core"]) as agent:
        begin = await agent.start()
        assert (await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"]))["status"] == "next_step"
    assert not project.state.exists()
    assert (project.root / "acme-store.log").read_text() == "opened\nclosed\n"


async def test_a_store_that_is_not_chosen_is_not_opened(project, install):
    install("good")
    project.write_job()
    async with project.agent() as agent:
        await agent.start()
    assert not (project.root / "acme-store.log").exists()
