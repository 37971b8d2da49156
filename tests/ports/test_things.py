"""The names of things: what events and items of the inbox are about, and which page shows it."""

from __future__ import annotations

import pytest

from deepwork.ports.things import PAGES, owner_of, thing_of, things_of


@pytest.mark.parametrize(
    ("reference", "thing"),
    [
        ({"kind": "session", "id": "4f", "step_id": "write"}, "session:4f"),
        ({"kind": "plan", "id": "wf_1"}, "plan:wf_1"),
        ({"kind": "task", "id": "tk_1", "workflow_id": "wf_1"}, "task:tk_1"),
        ({"kind": "tracked-workflow", "id": "tw_1", "issue_id": "iss_1"}, "work:tw_1"),
        ({"kind": "message", "id": "msg_1", "agent_id": "ag_1"}, "agent:ag_1"),
        ({"kind": "message", "id": "msg_1"}, None),
        ({"kind": "file", "id": "a.txt"}, None),
        ({}, None),
    ],
)
def test_an_item_of_the_inbox_is_about_a_thing_that_a_page_shows_or_about_none(reference, thing):
    assert thing_of(reference) == thing
    assert thing is None or thing.partition(":")[0] in PAGES


@pytest.mark.parametrize(
    ("source", "event", "workflow_id", "data", "things"),
    [
        ("core", "session:verdict", "4f", {"id": "x"}, ["session:4f"]),
        (
            *("orchestration", "task:claimed", "wf_1", {"id": "tk_1", "assigned_agent_id": "ag_1", "fence": 1}),
            ["task:tk_1", "plan:wf_1", "agent:ag_1"],
        ),
        ("orchestration", "checkpoint:added", "wf_1", {"id": "cp_1", "task_id": "tk_1"}, ["task:tk_1", "plan:wf_1"]),
        (
            *("orchestration", "agent:offline", None, {"id": "ag_1", "task_ids": ["tk_1", "tk_2"]}),
            ["agent:ag_1", "task:tk_1", "task:tk_2"],
        ),
        (
            *("orchestration", "message:sent", None, {"id": "m", "sender_id": "ag_1", "recipient_id": "ag_2"}),
            ["agent:ag_1", "agent:ag_2"],
        ),
        ("tracking", "task:created", "tw_1", {"id": "tt_1", "task_id": "tt_1"}, ["work:tw_1"]),
        ("acme", "task:claimed", "x", {"id": "tk_1", "task_id": "tk_1"}, []),
        ("orchestration", "task:updated", None, {"id": None, "agent_id": 5, "task_ids": [None, ""]}, []),
    ],
)
def test_an_event_is_about_what_is_most_worth_opening_then_its_owner_and_others_that_it_names(
    source, event, workflow_id, data, things
):
    assert things_of(source, event, workflow_id, data) == things


def test_what_an_event_of_an_unknown_plugin_belongs_to_has_no_page():
    assert owner_of("acme", "wf_1") is None
    assert owner_of("core", None) is None
