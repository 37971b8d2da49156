"""The JSON of a session in its file: its definition is written once."""

from __future__ import annotations

import json

import pytest

from deepwork.api import Session, Workspace
from deepwork.builtin.json_store.store import JsonStore

pytestmark = pytest.mark.anyio


async def test_every_save_of_a_session_writes_all_of_it(project):
    """Definitions are written once and put into later files as they are; other fields may look like them."""
    project.write_job("other")
    project.write_job(common_job_info_provided_to_all_steps_at_runtime='"definition": null,\n  "definition": null')
    project.write("a.md")
    async with project.agent() as agent, JsonStore(Workspace(project.root)) as second_store:
        session_id = (await agent.start())["session_id"]
        file = project.state / f"session_{session_id}.json"
        for fields in ({"definition": None}, {"later": {"definition": None}}, {}):
            text = file.read_text()
            session = Session.model_validate_json(text, extra="allow")
            assert text == session.model_dump_json(indent=2) + "\n"
            assert session.definition
            progress = {"a": session.step_progress["a"].model_copy(update=fields)}
            changed = session.model_copy(update={"goal": '\n  "definition": null', "step_progress": progress})
            await second_store.save(changed, expected=session.revision)
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"
        other_id = (await agent.start(job="other"))["session_id"]
        for either in (file, project.state / f"session_{other_id}.json"):
            text = either.read_text()
            assert text == Session.model_validate_json(text).model_dump_json(indent=2) + "\n"
            assert f'"job_dir": "{project.jobs / json.loads(text)["job_name"]}"' in text
