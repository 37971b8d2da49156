"""Job files in every form that the format allows."""

from __future__ import annotations

import json

import pytest
import yaml

from deepwork.models.jobs import FileInput, HookAction, Job, UserInput

pytestmark = pytest.mark.anyio


def test_a_job_with_everything_that_the_format_knows_loads_without_warnings(full, load):
    job = load(full)
    assert isinstance(job, Job)
    assert job.warnings == ()
    collect, charts, text = job.definition.steps
    assert [flow.entries for flow in job.definition.workflows] == [[["collect"], ["charts", "text"]], [["collect"]]]
    assert job.definition.workflows[0].agent == "general"
    assert collect.inputs == [UserInput(name="quarter", description="Which quarter")]
    assert charts.inputs == [FileInput(file="figures.csv", from_step="collect")]
    assert charts.reviews[0].additional_review_guidance == ""
    assert charts.hooks.before_prompt == [HookAction(prompt_file="think.md")]
    assert charts.stop_hooks == [HookAction(prompt="Is it done?")]
    assert (charts.exposed, charts.hidden, charts.agent) == (True, False, "writer")
    assert (text.outputs, text.reviews, text.dependencies) == ({}, [], [])


@pytest.mark.parametrize(
    "rewrite",
    [
        pytest.param(lambda text: "\ufeff" + text, id="byte order mark"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="lines end with CRLF"),
        pytest.param(lambda text: "\ufeff" + text.replace("\n", "\r\n"), id="both"),
        pytest.param(lambda text: text.partition("\n")[2], id="without the comment of the first line"),
        pytest.param(lambda text: f"---\n{text}...\n", id="marked as a document"),
        pytest.param(lambda text: f"%YAML 1.1\n---\n{text}", id="with a directive"),
        pytest.param(lambda text: text.rstrip("\n"), id="no line end at the end"),
        pytest.param(lambda text: json.dumps(yaml.safe_load(text)), id="JSON"),
        pytest.param(lambda text: yaml.safe_dump(yaml.safe_load(text)), id="keys sorted"),
        pytest.param(lambda text: yaml.safe_dump(yaml.safe_load(text), default_flow_style=True), id="flow style"),
        pytest.param(lambda text: yaml.safe_dump(yaml.safe_load(text), default_style='"'), id="everything quoted"),
        pytest.param(lambda text: text.replace("true", "yes").replace("false", "no"), id="yes and no"),
        pytest.param(lambda text: text.replace("true", "On").replace("false", "OFF"), id="On and OFF"),
        pytest.param(lambda text: text.replace("true", "TRUE").replace("false", "False"), id="TRUE and False"),
    ],
)
def test_a_job_means_the_same_in_every_spelling(rewrite, full, load):
    job = load(rewrite(full))
    assert isinstance(job, Job), job
    assert job.definition == load(full).definition


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("workflows:\n  - name: full", "workflows: []\nx:\n  - name: full"),
        ("    agent: general\n", ""),
        ("    inputs:\n      - name: quarter\n        description: Which quarter\n", "    inputs: []\n"),
        ("    inputs:\n      - name: quarter\n        description: Which quarter\n", ""),
        ('        additional_review_guidance: ""\n', ""),
        ("    exposed: true\n    hidden: false\n    agent: writer\n", ""),
        ("    stop_hooks:\n      - prompt: Is it done?\n", "    stop_hooks: []\n"),
        ("    stop_hooks:\n      - prompt: Is it done?\n", ""),
        ("run_each: charts", "run_each: step"),
        ("      before_tool:\n        - prompt: Think first\n", "      before_tool: []\n"),
        ("      before_tool:\n        - prompt: Think first\n", ""),
        ("      - [charts, text]", "      - [charts]\n      - [text]"),
    ],
    ids=range(12),
)
def test_what_is_optional_may_be_left_out_or_empty(old, new, full, load):
    assert old in full
    text = full.replace(old, new)
    if "\nx:\n" in text:
        text = text[: text.index("x:\n")] + text[text.index("\nsteps:") + 1 :]
    job = load(text)
    assert isinstance(job, Job), job


@pytest.mark.parametrize(
    "name", ["job.yml", "output1.md", "step_instruction_files", "Über uns.md", "a/b c", "on it", "1 a"]
)
def test_an_output_may_have_any_name(name, full, load):
    job = load(full.replace("run_each: charts", f'run_each: "{name}"').replace("      charts:\n", f'      "{name}":\n'))
    assert list(job.definition.steps[1].outputs) == [name]


def test_anchors_aliases_and_merge_keys_are_allowed(full, load):
    text = full.replace("      figures.csv:\n", "      figures.csv: &figures\n").replace(
        "    outputs: {}\n", "    outputs:\n      more.csv:\n        <<: *figures\n        required: false\n"
    )
    text = text.replace("      - collect\n      - [charts", "      - &first collect\n      - [charts")
    text = text.replace("    steps:\n      - collect\nsteps", "    steps:\n      - *first\nsteps")
    job = load(text)
    assert isinstance(job, Job), job
    more = job.definition.steps[2].outputs["more.csv"]
    assert (more.type, more.description, more.required) == ("file", "One row a region", False)
    assert job.definition.workflows[1].entries == [["collect"]]


def test_steps_can_be_merged_from_each_other(full, load):
    text = full.replace("  - id: text\n", "  - &text\n    id: text\n") + "  - <<: *text\n    id: again\n"
    job = load(text.replace("[charts, text]", "[charts, text, again]"))
    assert isinstance(job, Job), job
    assert (job.definition.steps[3].id, job.definition.steps[3].name) == ("again", "Write")


async def test_a_job_with_everything_is_done_to_its_end_even_by_another_server(project, full):
    """Every optional field comes back from the stored session: hooks did not."""
    for name in ("collect", "charts", "text"):
        project.write(f".deepwork/jobs/demo/steps/{name}.md", f"Do {name}\n")
    project.write(".deepwork/jobs/demo/job.yml", full)
    for name in ("f.csv", "a.png", "b.png"):
        project.write(name)
    async with project.agent() as agent:
        session_id = (await agent.start("demo", "full"))["session_id"]
        await agent.finish({"figures.csv": "f.csv"}, session_id=session_id)
    async with project.agent() as agent:
        reply = await agent.finish(
            {"charts": ["a.png", "b.png"]}, session_id=session_id, quality_review_override_reason="Seen by a person"
        )
    assert reply["status"] == "workflow_complete"
