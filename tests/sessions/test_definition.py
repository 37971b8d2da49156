"""A definition that was edited where its session is stored: what counts as edited, in sessions of every age."""

from __future__ import annotations

import json

import pytest

from deepwork.models.jobs import Review
from deepwork.models.sessions import PinnedDefinition
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(project, stored):
    """An open session, and what writes it back."""
    project.write_job(steps=[step("a", reviews=[review(), review("a.md")]), step("b")])
    for name in "ab":
        project.write(f"{name}.md")
    async with project.agent() as agent:
        await agent.start()
    return stored()


@pytest.fixture
def report(project, session):
    """Write the session back, report its first step, and return the refusal, or None."""

    async def report(*, enable_quality_gate=False):
        (project.state / f"session_{session['session_id']}.json").write_text(json.dumps(session))
        named = {"session_id": session["session_id"], "step_id": "a"}
        async with project.agent(enable_quality_gate=enable_quality_gate) as agent:
            result = await agent.client.call_tool(
                "finished_step", {"outputs": {"a.md": "a.md"}, **named}, raise_on_error=False
            )
            return result.content[0].text if result.is_error else None

    return report


def remove_criterion(session):
    session["definition"]["steps"]["a"]["reviews"][0]["quality_criteria"] = {"Good": "Is it there?"}


def remove_step(session):
    session["definition"]["workflow"]["steps"] = ["a"]
    del session["definition"]["steps"]["b"]


def change_outputs(session):
    session["definition"]["steps"]["b"]["outputs"]["b.md"]["required"] = False


def change_common_info(session):
    session["definition"]["common_job_info"] = "Every review passes."


def add_unknown_key(session):
    session["definition"]["newer"] = {"reviews": "off"}


def change_digest(session):
    session["definition"]["content_digest"] = "sha256:0"


def remove_definition(session):
    """Without one it would be taken for a session of release 0.9, and get what the job says now."""
    session["definition"] = None


def remove_reviews_and_digest(session):
    remove_criterion(session)
    del session["definition"]["content_digest"]


@pytest.mark.parametrize(
    "edit",
    [
        remove_criterion, remove_step, change_outputs, change_common_info, add_unknown_key, change_digest,
        remove_definition, remove_reviews_and_digest,
    ],
)  # fmt: skip
async def test_an_edited_definition_is_refused_and_left_as_it_is(session, report, stored, edit):
    edit(session)
    assert "was edited where it is stored" in await report()
    assert stored() == session


async def test_the_order_of_keys_is_no_edit(session, report):
    session["definition"] = json.loads(json.dumps(session["definition"], sort_keys=True))
    assert await report() is None


async def test_a_session_of_the_first_release_gets_the_digest_with_its_next_step(session, report, stored):
    digest = session["definition"].pop("content_digest")
    assert await report() is None
    assert stored()["definition"]["content_digest"] == digest


async def test_what_a_later_release_adds_to_the_models_is_no_edit_of_an_older_session(session, report, monkeypatch):
    """A field that a release adds has a default, which older sessions do not have."""
    del session["definition"]["steps"]["a"]["reviews"][0]["additional_review_guidance"]  # as if it were new
    assert "additional_review_guidance" in Review.model_fields
    definition = session["definition"]
    definition["content_digest"] = PinnedDefinition.model_validate_json(json.dumps(definition)).stored_digest
    assert await report() is None


async def test_a_stored_session_of_an_earlier_release_is_refused_once_it_was_edited(old_state):
    for name, session_id in old_state.open_sessions("json").items():
        file = old_state.project.state / f"session_{session_id}.json"
        session = json.loads(file.read_text())
        if session.get("definition"):
            session["definition"]["steps"]["draft"]["reviews"] = []
            file.write_text(json.dumps(session))
            async with old_state.project.agent(external_runner="judge") as agent:
                refusal = await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="?")
                assert "was edited where it is stored" in refusal, name
                await agent.call("abort_workflow", explanation="edited", session_id=session_id)
