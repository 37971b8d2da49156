"""JOBS-REQ-001.7: answers are plain dictionaries."""

from __future__ import annotations

import json

import pytest

from deepwork.models.replies import AbortedWorkflow, FinishedStep, StartedWorkflow, StepStatus, WorkflowList
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

CALLS = [
    ("get_workflows", {}, WorkflowList),
    ("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}, StartedWorkflow),
    ("finished_step", {"outputs": {"a.md": "a.md"}}, FinishedStep),
    ("finished_step", {"outputs": {"a.md": "a.md"}, "quality_review_override_reason": "good"}, FinishedStep),
    ("finished_step", {"outputs": {"b.md": "b.md"}}, FinishedStep),
    ("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}, StartedWorkflow),
    ("abort_workflow", {"explanation": "e"}, AbortedWorkflow),
]


@pytest.mark.req("JOBS-REQ-001.7.1")
async def test_every_answer_is_the_dump_of_a_pydantic_model(project):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    project.write("b.md")
    server = project.server()
    for tool, arguments, model in CALLS:
        answer = (await server.call_tool(tool, arguments)).structured_content
        assert type(answer) is dict
        assert answer == model.model_validate(answer).model_dump(mode="json")


@pytest.mark.req("JOBS-REQ-001.7.1")
async def test_keys_of_the_specification_without_a_value_are_there_as_null_and_others_are_left_out(project):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
    assert "outputs_by_step" not in reply
    empty = {key for key, value in reply.items() if value is None}
    assert empty == {"feedback", "failed_reviews", "summary", "all_outputs"}


@pytest.mark.req("JOBS-REQ-001.7.1")
async def test_text_and_structure_of_an_answer_are_the_same(project):
    project.write_job()
    reply = await project.server().call_tool("get_workflows")
    [text] = reply.content
    assert json.loads(text.text) == reply.structured_content


@pytest.mark.req("JOBS-REQ-001.7.2")
def test_the_statuses_are_the_three_of_the_specification():
    assert [status.value for status in StepStatus] == ["needs_work", "next_step", "workflow_complete"]
