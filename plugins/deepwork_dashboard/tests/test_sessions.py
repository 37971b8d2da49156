"""The pages and the inbox show every session as its own text does, after any history."""

from __future__ import annotations

import os
from itertools import count

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwork.api import Session
from deepwork.sessions.standing import standing_of
from deepwork.testing import review, step
from deepwork.testing.strategies import continuations


async def begin(project):
    """Begin a session in which the three steps of a group are open."""
    steps = [step(name, reviews=[review()]) for name in ("first", "light", "dark", "deep")]
    project.write_job("group", steps, workflows={"main": [["first"], ["light", "dark", "deep"]]})
    project.write("first.md")
    async with project.agent("core") as agent:
        await agent.start("group")
        await agent.finish({"first.md": "first.md"}, quality_review_override_reason="fine")


def test_the_list_the_page_and_the_inbox_say_the_same_of_every_history(project):
    anyio.run(begin, project)
    [file] = project.state.glob("session_*.json")
    first_state = Session.model_validate_json(file.read_text())
    moments = (f"2026-01-01T00:00:00.{number:06}+00:00" for number in count())  # every save has another one
    with project.dashboard() as dash:

        @settings(max_examples=50)
        @given(continuations(first_state), st.booleans())
        def check(session, says_so):
            session = session.model_copy(update={"updated_at": next(moments), "standing": None})
            expected = standing_of(session)
            if says_so:  # an earlier release saves no standing
                session = session.model_copy(update={"standing": expected})
            beside = project.state / ".written"
            beside.write_text(session.model_dump_json(indent=2) + "\n")
            os.replace(beside, file)
            [row] = dash.get("api/sessions")["items"]
            for view in (row, dash.get(f"api/sessions/{session.session_id}")):
                assert (view["waits"], view["position"]) == (bool(expected.waits), [*expected.place])
                assert expected.last_call_at.startswith(view["last_call_at"].removesuffix("Z"))
            items = dash.get("api/inbox?limit=500")["items"]
            waits = {(item["reference"]["step_id"], item["kind"]) for item in items}
            assert waits == {(wait.step_id, wait.kind) for wait in expected.waits}

        check()
