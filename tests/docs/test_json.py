"""What commands print as JSON, and what the log has, key by key."""

from __future__ import annotations

import json
import os
import sys

import anyio
import pytest

from deepwork.testing import review, step

pytestmark = pytest.mark.anyio


def jobs_and_shadowed(printed):
    assert printed["jobs"][0].keys() | {"hidden_by"} == printed["shadowed"][0].keys()
    assert printed["errors"][0].keys() == {"source", "job_name", "job_dir", "error"}
    return printed["shadowed"][0]


LISTINGS = {
    "deepwork jobs list": (["jobs", "list", "--json"], jobs_and_shadowed),
    "deepwork jobs get-stack": (["jobs", "get-stack"], lambda printed: printed["active_sessions"][0]),
    "deepwork jobs check": (["jobs", "check", "--json"], lambda printed: printed),
    "deepwork sessions list": (["sessions", "list", "--json"], lambda printed: printed["sessions"][0]),
    "deepwork gate try": (["gate", "try", "project_tour", "a", "--file", "a.md", "--json"], lambda printed: printed),
    "deepwork plugins": (["plugins", "--all", "--cost", "--json"], lambda printed: printed["plugins"][0]),
    "deepwork doctor": (["doctor", "--json"], lambda printed: printed["findings"][0]),
}


@pytest.fixture
async def lived_in(project):
    """Make a project with a job that hides a packaged one, a broken one, and a session."""
    project.write_job("project_tour")
    project.write(".deepwork/jobs/broken/job.yml", "name: broken")
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start("project_tour")
    return project


@pytest.mark.parametrize("title", LISTINGS)
async def test_every_key_of_a_listing_is_listed(title, lived_in, reference):
    words, pick = LISTINGS[title]
    command = [sys.executable, "-m", "deepwork", *words, "--path", str(lived_in.root)]
    printed = await anyio.run_process(command, check=False)
    assert [*reference("cli").rows(title)] == [*pick(json.loads(printed.stdout))]


async def test_every_key_that_a_reviewing_command_reads_is_listed(project, reference):
    results = [{"criterion": "Good", "passed": True}]
    answer = json.dumps({"passed": True, "criteria_results": results})
    command = json.dumps({"run": ["sh", "-c", f"cat > {project.root}/request.json; echo '{answer}'"]})
    project.write(
        f"{os.environ['XDG_CONFIG_HOME']}/deepwork/config.yml", f"quality_gate: {{commands: {{keeper: {command}}}}}"
    )
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.agent(external_runner="keeper") as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"
    keys = [*json.loads((project.root / "request.json").read_text())]
    assert [*reference("configuration").rows("What a command reads and prints")] == keys


async def test_every_key_of_the_log_is_listed(project, reference):
    async with project.stdio_agent("--log-json", str(project.root / "log")) as agent:
        await agent.call("get_workflows")
    keys = {*json.loads((project.root / "log").read_text().splitlines()[-1])}
    assert {*reference("cli").rows("The log")} == keys | {"traceback"}
