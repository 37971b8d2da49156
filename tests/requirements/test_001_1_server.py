"""JOBS-REQ-001.1: the server is created and configured."""

from __future__ import annotations

import inspect
import logging
from contextlib import suppress
from pathlib import Path

import pytest
from fastmcp import FastMCP

from deepwork.server import create_server
from deepwork.testing import Refused, review, step

pytestmark = pytest.mark.anyio

LIFECYCLE = ["Discover", "Start", "Execute", "Checkpoint", "Iterate", "Continue", "Complete"]


def parameter(name: str) -> inspect.Parameter:
    return inspect.signature(create_server).parameters[name]


@pytest.mark.req("JOBS-REQ-001.1.1")
def test_create_server_gives_a_fastmcp_server(project):
    assert isinstance(create_server(project.root), FastMCP)


@pytest.mark.req("JOBS-REQ-001.1.2")
@pytest.mark.parametrize("kind", [Path, str])
async def test_a_relative_project_root_stays_the_folder_that_it_meant(project, monkeypatch, kind):
    project.write_job()
    monkeypatch.chdir(project.root.parent)
    server = create_server(kind(project.root.name))
    monkeypatch.chdir("/")
    async with project.agent(server) as agent:
        begin = await agent.start()
    assert begin["job_dir"] == str(project.jobs / "demo")
    assert (project.state / f"session_{begin['session_id']}.json").exists()


@pytest.mark.req("JOBS-REQ-001.1.3")
def test_the_quality_gate_is_on_unless_told_otherwise(probed):
    assert parameter("enable_quality_gate").default is True
    assert probed().engine.gate is not None
    assert probed(enable_quality_gate=True).engine.gate is not None


@pytest.mark.req("JOBS-REQ-001.1.4")
def test_the_gate_has_the_timeout_that_was_given_or_120_seconds(probed):
    assert parameter("quality_gate_timeout").default == 120
    assert probed().engine.gate.timeout == 120
    assert probed(quality_gate_timeout=7).engine.gate.timeout == 7


@pytest.mark.req("JOBS-REQ-001.1.5")
def test_the_gate_has_the_number_of_attempts_that_was_given_or_3(probed):
    assert parameter("quality_gate_max_attempts").default == 3
    assert probed().engine.gate.max_attempts == 3
    assert probed(quality_gate_max_attempts=9).engine.gate.max_attempts == 9


@pytest.mark.req("JOBS-REQ-001.1.8")
def test_without_a_runner_the_gate_has_no_cli_and_inlines_no_files(probed):
    gate = probed(enable_quality_gate=True, external_runner=None).engine.gate
    assert type(gate).__name__ == "QualityGate"
    assert gate.cli is None
    assert gate.max_inline_files == 0


@pytest.mark.req("JOBS-REQ-001.1.9")
async def test_with_the_gate_off_there_is_none(project, probed):
    probe = probed(enable_quality_gate=False)
    assert probe.engine.gate is None
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.agent(probe.server) as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"


@pytest.mark.req("JOBS-REQ-001.1.10")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_server_is_named_deepwork(project, mode):
    server = project.server()
    assert server.name == "deepwork"
    async with project.agent(server, mode=mode) as agent:
        assert agent.client.server_info.name == "deepwork"


@pytest.mark.req("JOBS-REQ-001.1.11")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_instructions_describe_the_lifecycle_in_its_order(project, mode):
    async with project.agent(mode=mode) as agent:
        text = agent.client.instructions
    places = [text.find(word) for word in LIFECYCLE]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.req("JOBS-REQ-001.1.12")
async def test_every_tool_call_is_logged_with_tool_and_stack(project, caplog):
    project.write_job()
    project.write("a.md")
    calls = [
        ("get_workflows", {}, "empty"),
        ("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}, "demo/main@a"),
        ("get_workflows", {}, "demo/main@a"),
        ("finished_step", {"outputs": {"a.md": "a.md"}}, "demo/main@b"),
        ("finished_step", {"outputs": {"b.md": "missing"}}, "demo/main@b"),
        ("finished_step", {"outputs": 3}, "demo/main@b"),
        ("nothing", {}, "demo/main@b"),
        ("abort_workflow", {"explanation": "e"}, "empty"),
    ]
    async with project.agent() as agent:
        for tool, arguments, stack in calls:
            caplog.clear()
            with caplog.at_level(logging.INFO, "deepwork.calls"), suppress(Refused):
                await agent.call(tool, **arguments)
            [line] = [record.getMessage() for record in caplog.records if record.name == "deepwork.calls"]
            assert line.startswith(f"{tool}: ")
            assert f"stack: {stack}" in line


@pytest.mark.req("JOBS-REQ-001.1.12")
async def test_the_log_of_a_process_goes_to_stderr(project):
    project.write_job()
    async with project.stdio_agent() as agent:
        await agent.start()
    assert "start_workflow: ok (stack: demo/main@a" in (project.root / "server.log").read_text()
