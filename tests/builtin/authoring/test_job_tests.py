"""`deepwork jobs test`: conversations with a job, compared with expectations."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET

import anyio
import jsonschema
import pytest
import yaml

from deepwork.builtin.authoring.new import EXAMPLE_NAMES
from deepwork.testing import step

REVIEW = {"run_each": "a.md", "quality_criteria": {"Short": "At most 5 lines?", "True": "Is it so?"}}
GREEN = """\
version: 1
job: demo
files: {src/x.txt: before}
start:
  reads: [Instructions for a, "At most 5 lines?", About demo]
steps:
  - step: a
    outputs: {a.md: {a.md: first}}
    verdicts: {a.md: {Short: fail}}
    expect: {status: needs_work, feedback: "At most 5 lines?", notices: Attempt 1 of 3}
  - step: a
    outputs: {a.md: {a.md: first}}
    verdicts: {a.md: {"True": none}}
    expect: {status: needs_work, feedback: no verdict}
  - step: a
    outputs: {b.md: {b.md: second}}
    expect: {refused: [Unknown outputs]}
  - step: a
    outputs: {a.md: {a.md: first}}
    notes: That is all.
    expect: {status: next_step, reads: [Instructions for b, b.md]}
  - step: b
    outputs: {b.md: {out/b.md: second}}
expect:
  status: workflow_complete
  steps: [a, b]
  outputs: {a.md: a.md, b.md: out/b.md}
"""


@pytest.fixture
def demo(project):
    """A job of two steps; the first is reviewed."""
    project.write_job("demo", [step("a", reviews=[REVIEW]), step("b")])
    return project


@pytest.fixture
def run_test(demo, invoke):
    """Write a test file of the job, and run it."""

    def run_test(text, *options):
        demo.write(".deepwork/jobs/demo/flow.test.yml", text)
        return invoke("jobs", "test", "demo", *options)

    return run_test


def test_a_conversation_that_goes_as_expected_is_green_and_its_coverage_is_printed(run_test):
    assert run_test(GREEN) == (
        0,
        "demo: steps 2 of 2, reviews 1 of 1, criteria 2 of 2, members 0 of 0\n",
        "1 test, all green.\n",
    )


@pytest.mark.parametrize(
    ("right", "broken", "line", "says"),
    [
        ("Instructions for a,", "Instructions for c,", 5, "what the agent reads does not have 'Instructions for c'"),
        ('feedback: "At most 5', 'feedback: "At most 6', 10, "the feedback does not have 'At most 6 lines?'"),
        ("Attempt 1 of 3", "Attempt 2 of 3", 10, "the notices does not have 'Attempt 2 of 3'"),
        (
            "{status: needs_work, feedback: no",
            "{status: next_step, feedback: no",
            14,
            "is 'needs_work', not 'next_step'",
        ),
        ("refused: [Unknown", "refused: [Known", 17, "the refusal does not have 'Known outputs'"),
        ("expect: {refused: [Unknown outputs]}", "notes: x", 15, "it is not accepted: Unknown outputs"),
        ("status: workflow_complete", "status: next_step", 25, "the last status is 'workflow_complete'"),
        ("steps: [a, b]", "steps: [b, a]", 26, "the completed steps are ['a', 'b'], not ['b', 'a']"),
        ("b.md: out/b.md}\n", "b.md: b.md}\n", 27, "the outputs are"),
        ("{Short: fail}", "{Shrt: fail}", 9, "has no criterion 'Shrt'; did you mean 'Short'?"),
        ("{a.md: {Short: fail}}", "{step: {Short: fail}}", 9, "step 'a' has no review 'step'; valid: a.md"),
        ("- step: b\n", "- step: c\n", 22, "job 'demo' has no step 'c'"),
        ("job: demo", "job: demo\nworkflow: other", 3, "job 'demo' has no workflow 'other'"),
        ("- step: b\n", "- step: a\n", 22, "it is not accepted"),
    ],
)
def test_what_is_not_as_expected_is_red_with_its_line(right, broken, line, says, run_test, demo):
    assert right in GREEN
    code, out, err = run_test(GREEN.replace(right, broken))
    file = demo.jobs / "demo/flow.test.yml"
    assert (code, err) == (1, "1 test, 1 red.\n")
    assert any(text.startswith(f"{file}:{line}: ") and says in text for text in out.splitlines()), out


def test_a_red_test_prints_the_conversation(run_test):
    out = run_test(GREEN.replace("steps: [a, b]", "steps: [b]")).out
    assert "> start_workflow(job_name='demo', workflow_name='main')" in out
    assert out.count("> finished_step(step_id='a'") == 4
    assert '"status": "workflow_complete"' in out
    assert "Error: Unknown outputs" in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 1\njob: demo\nstep: []\n", "flow.test.yml:3: unknown key 'step'; did you mean 'steps'?"),
        ("version: 2\njob: demo\n", "flow.test.yml:1: version: "),
        ("job: [", "flow.test.yml:2: "),
        ("version: 1\njob: other\n", "flow.test.yml:2: the job of this folder is named 'demo', not 'other'"),
        (
            "version: 1\njob: demo\nfiles: {../x: y}\n",
            "flow.test.yml:3: path '../x' lies outside of the folder of the test",
        ),
        ("version: 1\njob: demo\nfiles: {/etc/x: y}\n", "flow.test.yml:3: path '/etc/x' lies outside"),
        (
            "version: 1\njob: demo\nfiles: {.deepwork/tmp/x: y}\n",
            "flow.test.yml:3: path '.deepwork/tmp/x' is not one of",
        ),
        (
            "version: 1\njob: demo\nsteps: [{step: a, outputs: {a.md: {a/../../b: x}}}]\n",
            "flow.test.yml:3: path 'a/../../b' lies outside",
        ),
    ],
)
def test_a_broken_file_is_an_error_with_its_line_and_nothing_outside_is_written(text, says, run_test, project):
    code, out, _ = run_test(text)
    assert code == 1
    assert says in out
    assert not (project.root / "x").exists()


def test_a_job_that_cannot_be_used_makes_its_tests_red(run_test, project):
    project.write(".deepwork/jobs/demo/job.yml", "name: demo\n")
    code, out, _ = run_test(GREEN)
    assert code == 1
    assert "the job cannot be used: Failed to load: " in out


def test_a_path_that_is_nothing_is_wrong_usage(demo, run):
    assert run("jobs", "test", "nowhere").returncode == 2
    assert run("jobs", "test", "demo/nowhere.test.yml").returncode == 2


def test_a_job_without_tests_is_an_error_that_says_what_is_missing(demo, invoke):
    ended = invoke("jobs", "test")
    assert ended.code == 1
    assert "there are no tests: no *.test.yml beside demo" in ended.err


def test_a_group_is_reported_with_its_first_member_last(project, invoke):
    project.write_job("demo", [step("a"), step("b"), step("c")], {"main": [["a", "b", "c"]]})
    report = "  - {step: %s, outputs: {%s.md: {%s.md: x}}, expect: {status: next_step}}\n"
    text = "version: 1\njob: demo\nsteps:\n" + report % ("b", "b", "b")
    text += "  - {step: a, outputs: {a.md: {a.md: x}}, expect: {notices: c}}\n"
    text += "expect: {status: workflow_complete, steps: [b, c, a], outputs: {a.md: a.md, b.md: b.md}}\n"
    project.write(".deepwork/jobs/demo/x.test.yml", text)
    ended = invoke("jobs", "test")
    assert (ended.code, ended.out) == (0, "demo: steps 2 of 3, reviews 0 of 0, criteria 0 of 0, members 1 of 2\n")


def test_an_output_of_several_files_is_reported_as_a_list(project, invoke):
    files = {"all": {"type": "files", "description": "All", "required": True}}
    project.write_job("demo", [step("a", outputs=files)])
    text = "version: 1\njob: demo\nsteps: [{step: a, outputs: {all: {x: '1'}}}]\nexpect: {outputs: {all: [x]}}\n"
    project.write(".deepwork/jobs/demo/x.test.yml", text)
    assert invoke("jobs", "test").code == 0


def test_junit_names_each_test_with_its_job_and_what_is_red(run_test, demo):
    demo.write(".deepwork/jobs/demo/good.test.yml", GREEN)
    demo.write(".deepwork/jobs/demo/odd.test.yml", "version: 1\n")
    assert run_test(GREEN.replace("steps: [a, b]", "steps: [b]"), "--junit", "out.xml").code == 1
    suites = ET.parse(demo.root / "out.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("3", "1", "1")
    cases = {case.get("name"): case for case in suites.iter("testcase")}
    assert [*cases["good"]] == []
    assert "flow.test.yml:26: the completed steps" in cases["flow"].find("failure").get("message")
    assert "finished_step(step_id=" in cases["flow"].find("failure").text
    assert cases["odd"].find("error").get("message").endswith("odd.test.yml:1: 'job' is missing")


GATED = """\
version: 1
job: demo
steps:
  - {step: a, outputs: {a.md: {a.md: bad}}, gates: run, expect: {status: needs_work, feedback: The program ended}}
  - {step: a, outputs: {a.md: {a.md: good}}, gates: run}
"""


@pytest.fixture
def gated(demo):
    """A command of the project that passes files with `good` in them."""
    code = "import pathlib, sys; sys.exit('good' not in pathlib.Path('a.md').read_text())"
    commands = {"tests": {"run": [sys.executable, "-c", code], "verdict": "exit_code", "folder": "project"}}
    config = {"quality_gate": {"runner": "tests", "commands": commands}}
    demo.write(".deepwork/config.yml", yaml.safe_dump(config))
    return demo


def test_a_command_of_the_project_runs_only_once_it_is_trusted(gated, run_test):
    code, out, _ = run_test(GATED)
    assert code == 1
    assert "deepwork trust" in out
    gated.trust()
    ended = run_test(GATED.replace("The program ended", "The program"))
    assert ended.code == 0, ended.out
    assert not (gated.root / "a.md").exists()


def test_no_reviewer_but_a_command_is_asked(demo, run_test):
    code, out, _ = run_test(GATED)
    assert code == 1
    assert "`gates: run` runs commands, but the review of 'a.md' is judged by 'self'" in out
    assert not demo.state.exists()


def test_a_test_leaves_nothing_behind(run_test, demo, tmp_path_factory):
    before = sorted(demo.root.rglob("*"))
    run_test(GREEN)
    assert sorted(demo.root.rglob("*")) == sorted([*before, demo.jobs / "demo/flow.test.yml"])


def test_editors_check_tests_by_the_schema(run):
    schema = json.loads(run("schema", "test").stdout)
    jsonschema.validate(yaml.safe_load(GREEN), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1, "job": "demo", "colour": 1}, schema)
    parts = [schema, *schema["$defs"].values()]
    assert all(field["description"] for part in parts for field in part["properties"].values())


@pytest.mark.anyio
async def test_a_job_that_tests_green_starts_and_ends_in_a_server(run_test, demo):
    assert (await anyio.to_thread.run_sync(run_test, GREEN)).code == 0
    async with demo.agent(enable_quality_gate=False) as agent:
        await agent.start("demo")
        for path in ("a.md", "b.md"):
            demo.write(path)
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"
        assert (await agent.finish({"b.md": "b.md"}))["status"] == "workflow_complete"


@pytest.mark.anyio
@pytest.mark.parametrize("example", EXAMPLE_NAMES)
async def test_every_example_that_tests_green_starts_and_ends_in_a_server(example, project, invoke):
    """The server answers as the test has seen it: the same steps in the same order, and the same outputs."""
    folder = await anyio.to_thread.run_sync(lambda: invoke("jobs", "new", "mine", "--from", example))
    assert folder.code == 0
    assert (await anyio.to_thread.run_sync(lambda: invoke("jobs", "test", "mine"))).code == 0
    expected = yaml.safe_load((project.jobs / "mine/main.test.yml").read_text())["expect"]
    finished_steps, reply = [], {"status": "next_step"}
    async with project.agent(enable_quality_gate=False) as agent:
        begin = await agent.start("mine", "main")
        while reply["status"] == "next_step":
            members = [*begin.get("concurrent_steps", []), begin]
            step_id, outputs = next(
                (member["step_id"], member["step_expected_outputs"])
                for member in members
                if member["step_id"] not in finished_steps
            )
            submitted = {output["name"]: expected["outputs"][output["name"]] for output in outputs}
            for value in submitted.values():
                for path in [value] if isinstance(value, str) else value:
                    project.write(path)
            reply = await agent.finish(submitted, step_id=step_id)
            finished_steps.append(step_id)
            begin = reply.get("begin_step", begin)
    assert (reply["status"], finished_steps, reply["all_outputs"]) == (
        expected["status"],
        expected["steps"],
        expected["outputs"],
    )


def test_a_test_with_very_many_reports_is_refused(run_test):
    code, out, _ = run_test("version: 1\njob: demo\nsteps:\n" + "  - {step: a}\n" * 501)
    assert code == 1
    assert "flow.test.yml:3: steps: " in out


def test_the_sample_of_init_is_clean_and_has_a_green_test(project, invoke):
    assert invoke("init").code == 0
    assert invoke("jobs", "check") == (0, "", "1 job checked, no errors.\n")
    assert invoke("jobs", "test").err == "1 test, all green.\n"
