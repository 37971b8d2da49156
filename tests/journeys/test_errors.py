"""What an agent reads when it calls wrongly: what was wrong, what is valid, and nothing of our insides."""

from __future__ import annotations

import re

import pytest

from deepwork.testing import step

pytestmark = pytest.mark.anyio

START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
INSIDES = ["pydantic", "http", "Traceback", "site-packages", "src/deepwork", "fastmcp", 'File "', ".py"]

WRONG_TYPES = [
    ("start_workflow", {**START, "goal": 3}, ["goal: give a string, not a number"]),
    ("start_workflow", {**START, "job_name": None}, ["job_name: ", "string"]),
    ("start_workflow", {**START, "job_name": ["demo"]}, ["job_name: ", "a string, not a list"]),
    ("start_workflow", {**START, "instance_id": 7}, ["instance_id: ", "string"]),
    ("start_workflow", {**START, "parent_session_id": {}}, ["parent_session_id: ", "string"]),
    ("finished_step", {"outputs": "a.md"}, ["outputs: give an object, not a string"]),
    ("finished_step", {"outputs": ["a.md"]}, ["outputs: give an object, not a list"]),
    ("finished_step", {"outputs": None}, ["outputs: give an object, not null"]),
    ("finished_step", {"outputs": {"a.md": 3}}, ["outputs.a.md: give a path or a list of paths, not a number"]),
    ("finished_step", {"outputs": {"a.md": None}}, ["outputs.a.md: give a path or a list of paths, not null"]),
    (
        "finished_step",
        {"outputs": {"a.md": {"path": "a.md"}}},
        ["outputs.a.md: give a path or a list of paths, not an object"],
    ),
    ("finished_step", {"outputs": {"a.md": ["a.md", 3]}}, ["outputs.a.md.1: give a path, not a number"]),
    ("finished_step", {"outputs": {}, "notes": []}, ["notes: ", "string"]),
    ("finished_step", {"outputs": {}, "quality_review_override_reason": True}, ["quality_review_override_reason: "]),
    ("finished_step", {"outputs": {}, "session_id": 1}, ["session_id: ", "string"]),
    ("finished_step", {"outputs": {}, "step_id": 1.5}, ["step_id: ", "string"]),
    ("abort_workflow", {"explanation": False}, ["explanation: ", "string"]),
]
MISSING = [
    ("start_workflow", {}, ["goal: is required", "job_name: is required", "workflow_name: is required"]),
    ("start_workflow", {"goal": "g", "job_name": "demo"}, ["workflow_name: is required"]),
    ("finished_step", {}, ["outputs: is required"]),
    ("abort_workflow", {}, ["explanation: is required"]),
]
UNKNOWN = [
    ("start_workflow", {**START, "instance": "x"}, ["instance: is not a parameter; did you mean 'instance_id'?"]),
    ("finished_step", {"outputs": {}, "note": "x"}, ["note: is not a parameter; did you mean 'notes'?"]),
    ("finished_step", {"outputs": {}, "zzz": 1}, ["zzz: is not a parameter; valid: ", "outputs", "step_id"]),
    ("finished_step", {"output": {}}, ["outputs: is required", "output: is not a parameter; did you mean 'outputs'?"]),
    ("get_workflows", {"job": "x"}, ["job: is not a parameter; this tool takes none"]),
]
TOOLS = [
    ("finish_step", {}, ["Unknown tool: 'finish_step'; did you mean 'finished_step'?"]),
    (
        "zzz",
        {},
        ["Unknown tool: 'zzz'. ", "get_workflows, start_workflow, finished_step, abort_workflow."],
    ),
]
REFUSED = [
    ("start_workflow", {**START, "job_name": "nothing"}, ["'nothing'", "get_workflows"]),
    ("start_workflow", {**START, "job_name": "two"}, ["'main'", "'two'", "available: one, other"]),
    ("start_workflow", {**START, "job_name": "broken"}, ["Failed to parse job 'broken'", "job.yml:1: "]),
    ("start_workflow", {**START, "parent_session_id": "x"}, ["Session 'x' not found", "Active sessions"]),
    ("finished_step", {"outputs": {"x": "x"}}, ["Unknown outputs: x. Declared outputs: a.md"]),
    ("finished_step", {"outputs": {}}, ["Missing required outputs: a.md"]),
    ("finished_step", {"outputs": {"a.md": "gone"}}, ["'a.md'", "'gone'", "relative to the project"]),
    ("finished_step", {"outputs": {}, "session_id": "x"}, ["Session 'x' not found", "Active sessions"]),
    ("finished_step", {"outputs": {}, "step_id": "zzz"}, ["'zzz'", "the current step is 'a'"]),
    ("abort_workflow", {"explanation": "e", "session_id": "x"}, ["Session 'x' not found", "Active sessions"]),
]


@pytest.fixture
def jobs(project):
    """A good job, one with two workflows, and a broken one."""
    project.write_job()
    project.write_job("two", workflows={"one": ["a"], "other": ["b"]})
    project.write(".deepwork/jobs/broken/job.yml", "name: ]\n")
    return project


def insides(text, project):
    """Find what no agent should read; paths of the project itself are no such thing."""
    foreign = text.replace(str(project.root), "")
    return [word for word in INSIDES if word in foreign]


@pytest.mark.parametrize(("tool", "arguments", "words"), [*WRONG_TYPES, *MISSING, *UNKNOWN, *TOOLS, *REFUSED])
async def test_a_wrong_call_is_told_what_is_wrong_and_what_is_valid(jobs, tool, arguments, words):
    async with jobs.agent() as agent:
        await agent.start()
        text = await agent.refused(tool, **arguments)
    assert [word for word in words if word not in text] == []
    assert insides(text, jobs) == []


async def test_wrong_arguments_change_nothing(jobs):
    async with jobs.agent() as agent:
        await agent.start()
        [file] = jobs.state.glob("session_*")
        before = file.read_bytes()
        for tool, arguments, _ in [*WRONG_TYPES, *MISSING, *UNKNOWN]:
            text = await agent.refused(tool, **arguments)
            assert text.startswith(f"{tool}: wrong arguments; nothing was changed\n")
        assert file.read_bytes() == before
        assert len(list(jobs.state.glob("session_*"))) == 1


async def test_over_stdio_wrong_calls_are_told_the_same(jobs, mode):
    jobs.write("a.md")
    async with jobs.stdio_agent(mode=mode) as agent:
        await agent.start()
        for tool, arguments, words in [*WRONG_TYPES, *MISSING, *UNKNOWN, *TOOLS, *REFUSED]:
            text = await agent.refused(tool, **arguments)
            assert [word for word in words if word not in text] == []
            assert insides(text, jobs) == []
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"


async def test_each_wrong_argument_has_one_line(jobs):
    async with jobs.agent() as agent:
        text = await agent.refused("start_workflow", goal=1, job_name=2, more=3)
    assert [line.partition(":")[0] for line in text.splitlines()[1:]] == ["goal", "job_name", "workflow_name", "more"]


async def test_the_wrong_part_of_a_value_with_several_forms_is_named(jobs):
    """A list is right for an output, so nothing is said against it when one of its elements is wrong."""
    async with jobs.agent() as agent:
        text = await agent.refused("finished_step", outputs={"a.md": ["a.md", 3]})
    assert text.splitlines()[1:] == ["outputs.a.md.1: give a path, not a number"]


async def test_an_error_of_many_wrong_arguments_stays_short(jobs):
    async with jobs.agent() as agent:
        text = await agent.refused("finished_step", outputs={f"name{number}" * 100: 3 for number in range(200)})
    assert len(text) < 5000
    assert insides(text, jobs) == []


async def test_without_a_session_the_agent_reads_which_ones_it_can_resume(jobs):
    async with jobs.agent() as agent:
        begin = await agent.start()
    async with jobs.agent() as agent:
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
    assert text.startswith("No active workflow session")
    [call] = re.findall(r'finished_step\(session_id="(\w+)", step_id="\?", outputs=\{\}\)', text)
    assert call == begin["session_id"]
    assert "demo/main, step 'a'" in text


async def test_a_packaged_job_whose_instructions_are_asked_for_wrongly_tells_nothing_of_the_installation(project):
    async with project.agent() as agent:
        texts = [
            await agent.refused("start_workflow", goal="g", job_name="deepwork_job", workflow_name="new_job"),
            await agent.refused("start_workflow", goal="g", job_name="deepwork_jobs", workflow_name="zzz"),
        ]
        await agent.start("deepwork_jobs", "new_job")
        texts.append(await agent.refused("finished_step", outputs={}))
    assert [insides(text, project) for text in texts] == [[], [], []]


async def test_a_state_folder_that_cannot_be_written_is_told_with_its_cause(project):
    project.write_job(steps=[step("a")])
    project.write(".deepwork/tmp", "a file where the folder should be")
    async with project.agent() as agent:
        text = await agent.refused("start_workflow", **START)
    assert "folder" in text
    assert insides(text, project) == []
