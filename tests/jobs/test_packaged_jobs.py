"""The jobs that ship with DeepWork, and what they teach."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from deepwork.api import Job, parse_job

pytestmark = pytest.mark.anyio

JOBS = Path(str(files("deepwork"))) / "packaged_jobs"
NAMES = ["deepwork_jobs", "project_tour"]


def test_two_jobs_are_packaged():
    assert sorted(path.parent.name for path in JOBS.glob("*/job.yml")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_packaged_job_has_no_errors_and_no_warnings(name):
    job = parse_job(JOBS / name)
    assert isinstance(job, Job)
    assert job.warnings == ()


@pytest.mark.parametrize("name", NAMES)
def test_every_instructions_file_of_a_packaged_job_is_used(name):
    used = {step.instructions_file for step in parse_job(JOBS / name).definition.steps}
    assert {str(file.relative_to(JOBS / name)) for file in JOBS.glob(f"{name}/steps/*")} == used


@pytest.mark.parametrize("name", NAMES)
def test_the_first_lines_of_a_packaged_job_fit_on_a_screen(name):
    job = parse_job(JOBS / name).definition
    assert all(len(text) <= 80 for text in [job.summary, *(flow.summary for flow in job.workflows)])


async def test_every_step_of_every_packaged_workflow_can_be_walked_through(project):
    project.write("out.md")
    async with project.agent() as agent:
        for name in NAMES:
            for workflow in parse_job(JOBS / name).definition.workflows:
                begin, steps = await agent.start(name, workflow.name), []
                while begin:
                    steps.append(begin["step_id"])
                    assert begin["step_instructions"].strip()
                    outputs = {
                        output["name"]: "out.md" if output["type"] == "file" else ["out.md"]
                        for output in begin["step_expected_outputs"]
                    }
                    reply = await agent.finish(outputs, quality_review_override_reason="A test")
                    begin = reply.get("begin_step")
                assert steps == workflow.step_ids
                assert reply["status"] == "workflow_complete"


def test_the_example_of_the_format_is_a_valid_job_file(tmp_path):
    [example] = re.findall(r"```yaml\n(.*?)```", (JOBS / "deepwork_jobs" / "job_format.md").read_text(), re.DOTALL)
    job_dir = tmp_path / "quarterly_report"
    job_dir.mkdir()
    (job_dir / "job.yml").write_text(example)
    job = parse_job(job_dir)
    assert isinstance(job, Job), job
    assert [flow.entries for flow in job.definition.workflows] == [[["collect"], ["charts", "text"]]]
