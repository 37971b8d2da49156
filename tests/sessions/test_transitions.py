"""From one state of a session to the next: branch names, what is recorded, and what comes out at the end."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime

import pytest
from anyio import run_process
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deepwork.sessions.transitions import branch_name
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


# Branch names ----------------------------------------------------------------------------------------------------


def git_accepts(name):
    """Ask git itself whether a branch may have this name."""
    result = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, text=True, check=False)
    return result.returncode == 0 and result.stdout.strip() == name


INSTANCES = st.one_of(st.text(max_size=300), st.text(alphabet="./-@{}~^:?*[\\ \tlock\0\x7f", max_size=20))


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@settings(max_examples=150)
@given(job=st.text(max_size=40), workflow=st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True), instance=INSTANCES)
@example(job="a", workflow="b", instance=".lock")
@example(job="a", workflow="b", instance="x.lock.lock.")
@example(job="a", workflow="b", instance="a..b@{c}")
@example(job="", workflow="b", instance="/")
@example(job=".", workflow="b", instance="x" * 300)
@example(job="a", workflow="b", instance="x" * 191 + ".lock" + "x" * 10)
def test_a_branch_name_is_one_that_git_accepts(job, workflow, instance):
    name = branch_name(job, workflow, instance)
    assert name.startswith("deepwork/")
    assert len(name) < 250
    assert git_accepts(name), name


@pytest.mark.parametrize(
    ("instance", "branch"),
    [
        ("acme", "deepwork/demo-main-acme"),
        ("Q1_2026.v2", "deepwork/demo-main-Q1_2026.v2"),
        ("feature/new thing", "deepwork/demo-main-feature-new-thing"),
        ("a..b", "deepwork/demo-main-a-b"),
        ("x.lock", "deepwork/demo-main-x-"),
        ("日本", "deepwork/demo-main--"),
    ],
)
async def test_the_branch_name_is_made_of_job_workflow_and_instance(project, stored, instance, branch):
    project.write_job()
    async with project.agent() as agent:
        assert (await agent.start(instance_id=instance))["branch_name"] == branch
    assert stored()["branch_name"] == branch


@pytest.mark.parametrize("instance", [None, ""])
async def test_without_an_instance_the_branch_name_has_the_date(project, instance):
    project.write_job()
    async with project.agent() as agent:
        days = [f"{datetime.now(UTC):%Y%m%d}"]
        branch = (await agent.start(instance_id=instance))["branch_name"]
        days.append(f"{datetime.now(UTC):%Y%m%d}")
    assert branch in [f"deepwork/demo-main-{day}" for day in days]


async def test_the_branch_name_is_told_with_the_first_step_and_stays_the_same_through_the_session(project, stored):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        begin = await agent.start(instance_id="q1")
        assert "branch_name" not in (await agent.finish(DONE))["begin_step"]
        assert stored()["branch_name"] == begin["branch_name"]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
async def test_no_branch_is_made(project):
    await run_process(["git", "init", "-q", str(project.root)])
    project.write_job()
    async with project.agent() as agent:
        await agent.start(instance_id="q1")
    assert list((project.root / ".git" / "refs" / "heads").iterdir()) == []


# What is recorded ------------------------------------------------------------------------------------------------


async def test_the_history_tells_everything_that_happened_in_its_order(project, stored):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        await agent.start()
        await agent.finish(DONE)
        await agent.finish(DONE, quality_review_override_reason="All passed")
        await agent.finish({"b.md": "b.md"})
    history = stored()["history"]
    assert [(entry["kind"], entry["step_id"]) for entry in history] == [
        ("started", None),
        ("step_begun", "a"),
        ("review_handed_back", "a"),
        ("self_review", "a"),
        ("step_completed", "a"),
        ("step_begun", "b"),
        ("step_completed", "b"),
        ("completed", None),
    ]
    assert history[0]["detail"]["principal"] == "local"
    assert all(datetime.fromisoformat(entry["at"]).tzinfo for entry in history)


async def test_an_abort_stands_in_the_history_with_its_reason(project, stored):
    project.write_job()
    async with project.agent() as agent:
        await agent.start()
        await agent.call("abort_workflow", explanation="Not needed")
    last = stored()["history"][-1]
    assert (last["kind"], last["step_id"], last["detail"]) == ("aborted", "a", {"explanation": "Not needed"})


async def test_each_step_has_its_times_outputs_and_notes(project, stored):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        await agent.finish(DONE, notes="Two things were unclear")
    first, second = stored()["step_progress"].values()
    assert first["started_at"] <= first["completed_at"] <= second["started_at"]
    assert (first["outputs"], first["notes"], first["quality_attempts"]) == (DONE, "Two things were unclear", 0)
    assert (second["outputs"], second["notes"], second["completed_at"]) == ({}, None, None)


# The end ---------------------------------------------------------------------------------------------------------


async def test_outputs_of_one_name_are_merged_the_later_winning_and_kept_by_step(project):
    same = {"same": output(), "own": output(required=False)}
    project.write_job(steps=[step("a", outputs=same), step("b", outputs=same), step("c", outputs={})])
    for name in ("first", "second", "own"):
        project.write(name)
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({"same": "first", "own": "own"})
        await agent.finish({"same": "second"})
        reply = await agent.finish({})
    assert reply["all_outputs"] == {"same": "second", "own": "own"}
    assert reply["outputs_by_step"] == {"a": {"same": "first", "own": "own"}, "b": {"same": "second"}, "c": {}}


@pytest.mark.parametrize(("steps", "count"), [("a", "1 step."), ("ab", "2 steps.")])
async def test_the_summary_names_the_workflow_and_counts_its_steps(project, steps, count):
    project.write_job(steps=[step(name, outputs={}) for name in steps])
    async with project.agent() as agent:
        await agent.start()
        for _ in steps:
            reply = await agent.finish({})
    assert reply["summary"] == f"Workflow 'main' completed: {count}"


async def test_a_completed_session_keeps_its_last_step_and_has_an_end(project, stored):
    project.write_job(steps=[step("a", outputs={})])
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({})
    session = stored()
    assert (session["status"], session["current_step_id"], session["abort_reason"]) == ("completed", "a", None)
    assert session["completed_at"] >= session["started_at"]


async def test_members_of_a_group_that_were_never_reported_end_with_it_and_are_named(project, stored):
    project.write_job(steps=[step(name) for name in "abcd"], workflows={"main": [["a", "b", "c"], "d"]})
    project.write("a.md")
    project.write("c.md")
    async with project.agent() as agent:
        begin = await agent.start()
        await agent.finish({"c.md": "c.md"}, session_id=begin["session_id"], step_id="c")
        reply = await agent.finish(DONE)
    assert reply["begin_step"]["step_id"] == "d"
    assert reply["notices"][0].startswith("Completed without outputs, never reported: b. ")
    session = stored()
    assert session["step_progress"]["b"]["completed_at"]
    assert session["step_progress"]["b"]["outputs"] == {}
    unreported = [entry["step_id"] for entry in session["history"] if entry["detail"].get("reported") is False]
    assert unreported == ["b"]
