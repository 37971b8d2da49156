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
async def test_keys_that_the_specification_marks_as_optional_are_left_out_without_a_value(project):
    """The one null of a run is the description of a job, which the specification has always."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b", outputs={})])
    project.write("a.md")
    project.write("b.md")
    outputs = {"a.md": "a.md"}
    async with project.agent(tools=["core"]) as agent:
        listed = await agent.call("get_workflows")
        await agent.start()
        replies = [await agent.finish(outputs), await agent.finish(outputs, quality_review_override_reason="good")]
        replies.append(await agent.finish({}))
    assert [reply["status"] for reply in replies] == ["needs_work", "next_step", "workflow_complete"]
    assert replies[2].keys() == {"status", "summary", "all_outputs", "stack"}
    assert "null" not in json.dumps(replies)
    assert [*_nulls(listed)] == ["description"] * len(listed["jobs"])


def _nulls(value):
    """Yield the keys whose value is null, at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [])
    for key, item in items:
        if item is None:
            yield key
        yield from _nulls(item)


@pytest.mark.req("JOBS-REQ-001.7.1")
async def test_text_and_structure_of_an_answer_are_the_same(project):
    project.write_job()
    reply = await project.server().call_tool("get_workflows")
    [text] = reply.content
    assert json.loads(text.text) == reply.structured_content


@pytest.mark.req("JOBS-REQ-001.7.2")
def test_the_statuses_are_the_three_of_the_specification():
    assert [status.value for status in StepStatus] == ["needs_work", "next_step", "workflow_complete"]
