"""A client that can ask its user is asked which workflow is meant, where an agent names none that there is."""

from __future__ import annotations

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from deepwork.testing import Agent, step

pytestmark = pytest.mark.anyio

STEPS = {"steps": [step("a")], "workflows": {"draft": ["a"], "publish": ["a"]}}


@pytest.fixture(params=["auto", "legacy"])
def start(request, project):
    """Start a workflow with a client that asks its user; give the reply or the refusal, and what was asked."""

    async def start(job, workflow, answer):
        questions = []

        async def handler(message, response_type, params, context):
            questions.append((message, params.requested_schema["properties"]["choice"]["enum"]))
            if answer is None:
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content={"choice": answer})

        async with Client(project.server(), mode=request.param, elicitation_handler=handler) as client:
            arguments = {"goal": "g", "job_name": job, "workflow_name": workflow}
            result = await client.call_tool("start_workflow", arguments, raise_on_error=False)
            text = result.content[0].text if result.is_error else ""
            stack = [] if result.is_error else result.structured_content["stack"]
            active = (await Agent(client).call("get_workflows")).get("active_sessions", ())
        return text, [entry["workflow"] for entry in stack], len(active), questions

    return start


async def test_the_user_chooses_among_several_workflows(project, start):
    project.write_job("notes", **STEPS)
    refusal, stack, _, [(question, options)] = await start("notes", "main", "notes/publish")
    assert (refusal, stack) == ("", ["notes/publish"])
    assert "notes/main" in question
    assert options == ["notes/draft", "notes/publish"]


async def test_the_user_chooses_among_several_jobs_with_that_workflow(project, start):
    for name in ("notes", "letters"):
        project.write_job(name, **STEPS)
    _, stack, _, [(_, options)] = await start("zzz", "draft", "letters/draft")
    assert (stack, sorted(options)) == (["letters/draft"], ["letters/draft", "notes/draft"])


@pytest.mark.parametrize("answer", [None, "what was not offered"])
async def test_without_a_choice_nothing_is_started(project, start, answer):
    project.write_job("notes", **STEPS)
    refusal, _, active, questions = await start("notes", "main", answer)
    assert (active, len(questions)) == (0, 1)
    assert "chosen none of: notes/draft, notes/publish" in refusal


@pytest.mark.parametrize(
    ("job", "workflow", "text"),
    [("notes", "publis", "did you mean 'publish'?"), ("note", "draft", "did you mean 'notes'?")],
)
async def test_a_slip_is_the_agents_to_correct(project, start, job, workflow, text):
    project.write_job("notes", **STEPS)
    refusal, _, _, questions = await start(job, workflow, "notes/draft")
    assert (text in refusal, questions) == (True, [])


async def test_what_there_is_is_started_without_a_question(project, start):
    project.write_job("notes", **STEPS)
    project.write_job("single", steps=[step("a")], workflows={"main": ["a"]})
    assert (await start("notes", "draft", None))[1:] == (["notes/draft"], 1, [])
    assert (await start("single", "other", None))[1] == ["single/main"]
