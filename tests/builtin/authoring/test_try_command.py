"""`deepwork jobs try`: the agent of a job, played at the terminal."""

from __future__ import annotations

import json

import pytest

from deepwork.testing import output, step

REVIEW = {"run_each": "a.md", "quality_criteria": {"Short": "At most 5 lines?", "True": "Is it so?"}}


@pytest.fixture
def demo(project):
    """A job of two workflows; the first step is reviewed, the second delivers several files."""
    steps = [step("a", reviews=[REVIEW]), step("b", outputs={"any/../name": output("files")}), step("c")]
    project.write_job("demo", steps, {"main": ["a", ["b", "c"]], "short": ["c"]})
    return project


def replies(text):
    """Return the replies that were shown, as JSON."""
    blocks = "".join(line[4:] + "\n" if line.startswith("  | ") else "\0" for line in text.splitlines()).split("\0")
    return [json.loads(block) for block in blocks if block]


def test_without_a_terminal_it_walks_through_and_prints_every_reply_with_its_tokens(demo, invoke, temporary_files):
    before = sorted(demo.root.rglob("*"))
    code, out, err = invoke("jobs", "try", "demo", "--yes")
    assert code == 0
    assert out.startswith("Job 'demo' has 2 workflows: main, short. Taking 'main'.\nstart_workflow demo/main  (about ")
    start, *more = replies(out)
    assert start["begin_step"]["step_instructions"] == "Instructions for a\n"
    assert [reply["status"] for reply in more] == ["next_step", "next_step", "workflow_complete"]
    assert err.startswith("4 replies, about ")
    assert sorted(demo.root.rglob("*")) == before
    assert list(temporary_files.glob("deepwork*")) == []
    assert invoke("jobs", "try", "demo").out.count("finished_step ") == 3


def test_it_plays_the_workflow_that_is_named(demo, invoke):
    code, out, _ = invoke("jobs", "try", "demo", "short")
    assert code == 0
    assert [*replies(out)[1]["all_outputs"]] == ["c.md"]
    assert "has no workflow 'shrt'; did you mean 'short'?" in invoke("jobs", "try", "demo", "shrt").err


def test_at_a_terminal_a_review_can_fail_be_overridden_and_a_step_reopened(demo, invoke):
    answers = ["fail", "2", "override", "because", "reopen", "a", "again", "quit"]
    code, out, _ = invoke("jobs", "try", "demo", "main", answer="\n".join(answers) + "\n")
    walk = replies(out)
    assert code == 0
    assert [reply.get("status") for reply in walk] == [None, "needs_work", "next_step", "needs_work"]
    assert "Is it so?" in walk[1]["feedback"]
    assert walk[2]["begin_step"]["step_id"] == "b"
    assert walk[3]["begin_step"]["step_id"] == "a"
    assert "again" in walk[3]["feedback"]


def test_a_step_that_cannot_begin_ends_it_with_the_error(demo, invoke):
    (demo.jobs / "demo/steps/b.md").unlink()
    code, _, err = invoke("jobs", "try", "demo", "main", "--yes")
    assert code == 1
    assert "Instructions file not found: 'steps/b.md'" in err


def test_a_job_that_cannot_be_used_is_an_error_with_its_line(demo, invoke):
    demo.write(".deepwork/jobs/demo/job.yml", "name: demo\n")
    code, _, err = invoke("jobs", "try", "demo")
    assert code == 1
    assert "job.yml:1: 'version' is missing" in err
