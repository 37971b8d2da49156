"""What an agent reads about the server as a whole."""

from __future__ import annotations

from deepwork import __version__
from deepwork.ports.records import ToolSet
from deepwork.server.instructions import MAX_CHARACTERS, join_instructions


def test_they_fit_what_clients_show_and_name_the_life_of_a_workflow_in_order(project):
    text = project.server().instructions
    assert len(text) <= 2000
    stages = ["Discover", "Start", "Execute", "Checkpoint", "Iterate", "Continue", "Complete"]
    places = [text.index(f"{stage}:") for stage in stages]
    assert places == sorted(places)


def test_they_name_every_tool(project):
    text = project.server().instructions
    assert [
        name for name in ("get_workflows", "start_workflow", "finished_step", "abort_workflow") if name not in text
    ] == []


def test_they_reach_a_client_with_name_and_version(project, wire):
    hello = wire().greet()
    assert hello["instructions"] == project.server().instructions
    assert (hello["serverInfo"]["name"], hello["serverInfo"]["version"]) == ("deepwork", __version__)


def test_those_of_plugins_follow_those_of_the_core(project, install):
    install("good")
    alone = project.server(tools=["core"]).instructions
    assert project.server().instructions == f"{alone}\n\nAcme tools say hello."
    assert project.server(tools=["acme"]).instructions == "Acme tools say hello."


def test_a_text_that_no_longer_fits_is_left_out_whole():
    sets = [
        ToolSet("b", [], instructions="too long " * 300),
        ToolSet("core", [], instructions="core"),
        ToolSet("a", [], instructions=""),
        ToolSet("c", [], instructions="short"),
    ]
    assert join_instructions(sets) == "core\n\nshort"


def test_together_they_never_exceed_what_fits():
    for length in range(900, 1010):
        sets = [ToolSet(name, [], instructions="x" * length) for name in ("a", "b", "core")]
        assert len(join_instructions(sets)) <= MAX_CHARACTERS == 2000


def test_their_first_three_hundred_characters_stand_alone(project):
    text = project.server().instructions
    beginning = text[:300]
    assert "\n\n" in beginning  # the first paragraph is whole
    names = ("get_workflows", "start_workflow", "finished_step", 'step_id "?"')
    assert [name for name in names if name not in beginning] == []
