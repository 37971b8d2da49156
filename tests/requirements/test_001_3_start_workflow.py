"""JOBS-REQ-001.3: `start_workflow`."""

from __future__ import annotations

import inspect

import pytest
from fastmcp.exceptions import ToolError

from deepwork.api import Job, JobSource, parse_job
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

STARTED = {"goal": "a goal", "job_name": "demo", "workflow_name": "main"}


@pytest.mark.req("JOBS-REQ-001.3.1")
async def test_start_workflow_is_an_async_tool(project):
    tool = await project.server().get_tool("start_workflow")
    assert inspect.iscoroutinefunction(tool.fn)


@pytest.mark.req("JOBS-REQ-001.3.2")
async def test_goal_job_name_and_workflow_name_are_required_strings(project):
    tool = await project.server().get_tool("start_workflow")
    assert tool.parameters["required"] == list(STARTED)
    assert {tool.parameters["properties"][name]["type"] for name in STARTED} == {"string"}


@pytest.mark.req("JOBS-REQ-001.3.2")
@pytest.mark.parametrize("missing", list(STARTED))
async def test_a_missing_parameter_is_refused_by_its_name(project, missing):
    project.write_job()
    async with project.agent() as agent:
        text = await agent.refused("start_workflow", **{k: v for k, v in STARTED.items() if k != missing})
    assert f"{missing}: is required" in text


@pytest.mark.req("JOBS-REQ-001.3.3")
@pytest.mark.parametrize(
    ("more", "stored_id"), [({}, None), ({"instance_id": None}, None), ({"instance_id": "q1"}, "q1")]
)
async def test_an_instance_id_may_be_given(project, stored, more, stored_id):
    project.write_job()
    async with project.agent() as agent:
        begin = await agent.start(**more)
    assert stored(begin["session_id"])["instance_id"] == stored_id


@pytest.mark.req("JOBS-REQ-001.3.4")
async def test_an_unknown_job_raises_a_tool_error_with_its_name(project):
    project.write_job()
    with pytest.raises(ToolError, match="Job not found: 'nothing'"):
        await project.server().call_tool("start_workflow", {**STARTED, "job_name": "nothing"})


@pytest.mark.req("JOBS-REQ-001.3.5")
@pytest.mark.parametrize("name", ["main", "other", ""])
async def test_the_only_workflow_of_a_job_is_started_whatever_the_name(project, stored, name):
    project.write_job()
    async with project.agent() as agent:
        begin = await agent.start(workflow=name)
    assert stored(begin["session_id"])["workflow_name"] == "main"


@pytest.mark.req("JOBS-REQ-001.3.6")
async def test_a_wrong_name_raises_a_tool_error_that_lists_several_workflows(project):
    project.write_job(workflows={"two": ["a"], "one": ["b"]})
    with pytest.raises(ToolError, match="'main' not found in job 'demo'; available: two, one"):
        await project.server().call_tool("start_workflow", STARTED)


@pytest.mark.req("JOBS-REQ-001.3.7")
async def test_a_workflow_without_steps_raises_a_tool_error(project, tmp_path, server_with_source):
    job = parse_job(project.write_job("empty", folder=tmp_path))
    assert isinstance(job, Job)
    [workflow] = job.definition.workflows
    definition = job.definition.model_copy(update={"workflows": [workflow.model_copy(update={"steps": []})]})

    class Source(JobSource):
        name = "elsewhere"

        def load(self):
            yield job.model_copy(update={"definition": definition})

    with pytest.raises(ToolError, match="'main' of job 'empty' has no steps"):
        await server_with_source(Source()).call_tool("start_workflow", {**STARTED, "job_name": "empty"})


@pytest.mark.req("JOBS-REQ-001.3.8")
async def test_a_new_session_is_created_in_the_state_manager(project, probed, stored):
    project.write_job()
    probe = probed()
    async with project.agent(probe.server) as agent:
        first, second = await agent.start(), await agent.start()
        session = await probe.engine.sessions.reload(first["session_id"])
    assert session.is_active
    assert session.workflow == "demo/main"
    assert first["session_id"] != second["session_id"]
    assert stored(first["session_id"])["goal"] == "a goal"


@pytest.mark.req("JOBS-REQ-001.3.9")
async def test_the_first_step_and_no_other_is_marked_as_started(project, stored):
    project.write_job()
    async with project.agent() as agent:
        begin = await agent.start()
    session = stored(begin["session_id"])
    assert session["current_step_id"] == "a"
    assert list(session["step_progress"]) == ["a"]
    assert session["step_progress"]["a"]["started_at"]
    assert session["step_progress"]["a"]["completed_at"] is None


@pytest.mark.req("JOBS-REQ-001.3.10")
async def test_the_text_of_the_first_instruction_file_is_given(project):
    project.write_job()
    project.write(".deepwork/jobs/demo/steps/a.md", "Do this.\n\n  Ünd das {here}.\n")
    async with project.agent() as agent:
        assert (await agent.start())["step_instructions"] == "Do this.\n\n  Ünd das {here}.\n"


@pytest.mark.req("JOBS-REQ-001.3.11")
async def test_begin_step_has_all_that_an_agent_needs(project):
    project.write_job(steps=[step("a", reviews=[review()])])
    async with project.agent() as agent:
        begin = await agent.start()
    assert begin["session_id"]
    assert begin["step_id"] == "a"
    assert begin["job_dir"] == str(project.jobs / "demo")
    assert [item["name"] for item in begin["step_expected_outputs"]] == ["a.md"]
    [review_listed] = begin["step_reviews"]
    assert (review_listed["run_each"], review_listed["quality_criteria"]) == ("step", {"Good": "Is it good?"})
    assert begin["step_instructions"] == "Instructions for a\n"
    assert begin["common_job_info"] == "About demo"


@pytest.mark.req("JOBS-REQ-001.3.12")
async def test_the_answer_has_the_stack_after_starting(project):
    project.write_job()
    project.write_job("other")
    async with project.agent() as agent:
        assert (await agent.call("start_workflow", **STARTED))["stack"] == [{"workflow": "demo/main", "step": "a"}]
        nested = await agent.call("start_workflow", **{**STARTED, "job_name": "other"})
    assert nested["stack"] == [{"workflow": "demo/main", "step": "a"}, {"workflow": "other/main", "step": "a"}]


@pytest.mark.req("JOBS-REQ-001.3.13")
async def test_an_expected_output_tells_name_type_description_and_whether_it_is_required(project):
    outputs = {"one": output(), "two": {"type": "files", "description": "Parts", "required": False}}
    project.write_job(steps=[step("a", outputs=outputs)])
    async with project.agent() as agent:
        first, second = (await agent.start())["step_expected_outputs"]
    assert first.keys() >= {"name", "type", "description", "required", "syntax_for_finished_step_tool"}
    assert (first["name"], first["type"], first["description"], first["required"]) == ("one", "file", "A file", True)
    assert (second["name"], second["type"], second["description"], second["required"]) == (
        "two",
        "files",
        "Parts",
        False,
    )


@pytest.mark.req("JOBS-REQ-001.3.14")
async def test_the_syntax_of_an_output_follows_its_type(project):
    project.write_job(steps=[step("a", outputs={"one": output(), "two": output("files")})])
    async with project.agent() as agent:
        begin = await agent.start()
    assert [item["syntax_for_finished_step_tool"] for item in begin["step_expected_outputs"]] == [
        "filepath",
        "array of filepaths for all individual files",
    ]
