"""Job files in every form that the format allows are listed and can be worked to the end."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio

EVERYTHING = """\
# yaml-language-server: $schema=https://example.org/job.schema.json
name: everything
version: "10.20.30"
summary: "Prüft \\u2014 jede Form 🙂"
common_job_info_provided_to_all_steps_at_runtime: |
  First line.

    Indented: {not} %filled in
workflows:
  - name: all
    summary: Groups, plain steps, and a group of one
    agent: general-purpose
    steps:
      - first
      - [second, third]
      - - fourth
      - last
  - {name: short, summary: In flow style, steps: [last]}
steps:
  - id: first
    name: First
    description: Every optional field
    instructions_file: steps/first.md
    inputs:
      - name: topic
        description: What it is about
    outputs: &outputs
      job.yml: {type: file, description: A name with a dot, required: true}
      step_instruction_files: {type: files, description: Several, required: true}
      "with spaces": {type: file, description: Optional, required: false}
    dependencies: []
    hooks:
      after_agent:
        - prompt: Was it good?
        - prompt_file: check.md
        - script: hooks/check.sh
      before_tool: [{prompt: Wait}]
      before_prompt: []
    stop_hooks:
      - script: hooks/stop.sh
    exposed: true
    hidden: yes
    agent: explorer
    reviews:
      - run_each: step
        quality_criteria:
          "Complete": "Is it complete?"
          "Clear": "Is it clear?"
        additional_review_guidance: ""
      - run_each: step_instruction_files
        quality_criteria: {Each: Is each good?}
        additional_review_guidance: |
          Look at
          every line.
  - id: second
    name: Second
    description: No outputs
    instructions_file: "./steps/../steps/first.md"
    outputs: {}
    reviews: []
  - id: third
    name: Third
    description: Outputs by alias, inputs from an earlier step
    instructions_file: steps/first.md
    dependencies: [first]
    inputs:
      - {file: job.yml, from_step: first}
      - {file: "with spaces", from_step: first}
    outputs: *outputs
    reviews:
      - {run_each: "with spaces", quality_criteria: {Nice: Is it nice?}}
  - id: fourth
    name: Fourth
    description: >
      Folded over
      two lines
    instructions_file: steps/first.md
    outputs:
      <<: *outputs
      extra: {type: files, description: Optional list, required: no}
    reviews: []
  - {id: last, name: Last, description: Flow style, instructions_file: steps/first.md, outputs: {o1: {type: file,
     description: d, required: on}}, reviews: [{run_each: o1, quality_criteria: {a: b}}]}
"""

SMALL = """\
name: {name}
version: '1.0.0'
summary: x
common_job_info_provided_to_all_steps_at_runtime: x
{workflows}
steps:
  - {{id: a, name: A, description: d, instructions_file: a.md, outputs: {{}}, reviews: []}}
"""

JSON = """{"name": "json_job", "version": "0.0.0", "summary": "JSON is YAML",
"common_job_info_provided_to_all_steps_at_runtime": "x", "workflows": [{"name": "w", "summary": "s", "steps": ["a"]}],
"steps": [{"id": "a", "name": "A", "description": "d", "instructions_file": "a.md", "outputs": {}, "reviews": []}]}"""


@pytest.fixture
def forms(project):
    """A project with a job for each form."""
    workflows = "workflows: [{name: w, summary: s, steps: [a]}]"
    jobs = {
        "everything": EVERYTHING,
        "json_job": JSON,
        "none_at_all": SMALL.format(name="none_at_all", workflows=""),
        "empty_list": SMALL.format(name="empty_list", workflows="workflows: []"),
        "with_mark": "\ufeff" + SMALL.format(name="with_mark", workflows=workflows),
        "windows_ends": SMALL.format(name="windows_ends", workflows=workflows).replace("\n", "\r\n"),
        "documents": "%YAML 1.1\n---\n" + SMALL.format(name="documents", workflows=workflows) + "...\n",
    }
    for name, text in jobs.items():
        project.write(f".deepwork/jobs/{name}/job.yml", text)
        project.write(f".deepwork/jobs/{name}/a.md")
    project.write(".deepwork/jobs/everything/steps/first.md", "Do it\n")
    return project


async def test_a_job_that_uses_every_form_is_worked_to_the_end(forms, connected, work):
    async with connected as agent:
        assert (await agent.call("get_workflows"))["errors"] == []
        begin = await agent.start("everything", "all")
        assert begin["common_job_info"] == "First line.\n\n  Indented: {not} %filled in\n"
        steps, reply = await work.do(agent, begin)
        assert steps == ["first", "third", "second", "fourth", "last"]
        assert reply["outputs_by_step"]["second"] == {}
        assert len(work.reviews) == 3
        begin = await agent.start("everything", "short")
        assert (await work.do(agent, begin))[0] == ["last"]


@pytest.mark.parametrize("job", ["json_job", "with_mark", "windows_ends", "documents"])
async def test_every_way_to_write_a_file_is_read(forms, work, job):
    async with forms.agent() as agent:
        steps, _ = await work.do(agent, await agent.start(job, "w"))
    assert steps == ["a"]


@pytest.mark.parametrize("job", ["none_at_all", "empty_list"])
async def test_a_job_without_workflows_is_listed_and_cannot_be_started(forms, job):
    async with forms.agent() as agent:
        [listed] = [entry for entry in (await agent.call("get_workflows"))["jobs"] if entry["name"] == job]
        assert listed["workflows"] == []
        text = await agent.refused("start_workflow", goal="g", job_name=job, workflow_name="w")
    assert "it has no workflows" in text


async def test_optional_outputs_may_all_be_left_out(forms):
    async with forms.agent(enable_quality_gate=False) as agent:
        await agent.start("everything", "all")
        forms.write("x.md")
        reply = await agent.finish({"job.yml": "x.md", "step_instruction_files": ["x.md"]})
        assert reply["status"] == "next_step"
        inputs = reply["begin_step"].get("concurrent_steps", [])[0].get("step_inputs", [])
    assert [(item["name"], item.get("path")) for item in inputs] == [("job.yml", "x.md"), ("with spaces", None)]
