"""JOBS-REQ-001.5: submitted outputs are checked."""

from __future__ import annotations

import pytest
from fastmcp.exceptions import ToolError

from deepwork.engine.outputs import check_outputs
from deepwork.errors import OutputError
from deepwork.models.jobs import StepOutput
from deepwork.paths.workspace import Workspace
from deepwork.testing import output, step

pytestmark = pytest.mark.anyio

DECLARED = {
    "report": output(),
    "parts": output("files"),
    "extra": output(required=False),
    "more": output("files", required=False),
}
GOOD = {"report": "r.md", "parts": ["p.md"]}


@pytest.fixture
async def server(project):
    """A server with a session whose step wants one file, several files, and two optional outputs."""
    project.write_job(steps=[step("a", outputs=DECLARED)])
    project.write("r.md")
    project.write("p.md")
    server = project.server()
    await server.call_tool("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"})
    return server


async def refused(server, outputs):
    with pytest.raises(ToolError) as caught:
        await server.call_tool("finished_step", {"outputs": outputs})
    return str(caught.value)


@pytest.mark.req("JOBS-REQ-001.5.1")
async def test_unknown_outputs_are_refused_with_them_and_the_declared_names(server):
    text = await refused(server, {**GOOD, "zebra": "z", "apple": "a"})
    assert text.startswith("Unknown outputs: apple, zebra. Declared outputs: extra, more, parts, report (step 'a' of ")


@pytest.mark.req("JOBS-REQ-001.5.2")
async def test_missing_required_outputs_are_refused_and_listed(server):
    assert (await refused(server, {"extra": "r.md"})).startswith(
        "Missing required outputs: parts, report (step 'a' of "
    )


@pytest.mark.req("JOBS-REQ-001.5.3")
async def test_optional_outputs_may_be_left_out(server):
    reply = await server.call_tool("finished_step", {"outputs": GOOD})
    assert reply.structured_content["status"] == "workflow_complete"


@pytest.mark.req("JOBS-REQ-001.5.4")
async def test_a_list_for_a_file_is_refused_as_the_wrong_type(server):
    text = await refused(server, {**GOOD, "report": ["r.md"]})
    assert text.startswith(
        "Output 'report' is declared as type 'file': give one path as a string, not a list (step 'a' of "
    )


@pytest.mark.req("JOBS-REQ-001.5.5")
async def test_a_file_that_does_not_exist_is_refused(server):
    assert "'report': file not found at 'nowhere.md'" in await refused(server, {**GOOD, "report": "nowhere.md"})


@pytest.mark.req("JOBS-REQ-001.5.5")
async def test_paths_are_relative_to_the_project_wherever_the_server_was_started(server, project, monkeypatch):
    monkeypatch.chdir("/")
    project.write("sub/r.md")
    reply = await server.call_tool("finished_step", {"outputs": {**GOOD, "report": "sub/r.md"}})
    assert reply.structured_content["all_outputs"]["report"] == "sub/r.md"


@pytest.mark.req("JOBS-REQ-001.5.6")
async def test_a_string_for_files_is_refused_as_the_wrong_type(server):
    text = await refused(server, {**GOOD, "parts": "p.md"})
    assert text.startswith(
        "Output 'parts' is declared as type 'files': give a list of paths, not a string (step 'a' of "
    )


@pytest.mark.req("JOBS-REQ-001.5.7")
@pytest.mark.parametrize(
    ("element", "words"),
    [
        (3, "a number"),
        (None, "null"),
        (["p.md"], "a list"),
        ({"path": "p.md"}, "an object"),
        (True, "true"),
    ],
)
def test_an_element_of_files_that_is_no_string_is_refused(project, element, words):
    """Over the protocol the schema refuses it earlier, so the check itself is asked."""
    project.write("p.md")
    declared = {"parts": StepOutput(**output("files"))}
    with pytest.raises(OutputError, match=f"'parts'.* each path is a string, not {words}"):
        check_outputs({"parts": ["p.md", element]}, declared, Workspace(project.root), owner="step a")


@pytest.mark.req("JOBS-REQ-001.5.7")
async def test_over_the_protocol_an_element_that_is_no_string_is_refused_by_its_place(server):
    assert "outputs.parts.1" in await refused(server, {**GOOD, "parts": ["p.md", 3]})


@pytest.mark.req("JOBS-REQ-001.5.8")
async def test_each_of_several_files_has_to_exist(server):
    text = await refused(server, {**GOOD, "parts": ["p.md", "gone.md", "r.md"]})
    assert "'parts': file not found at 'gone.md'" in text
