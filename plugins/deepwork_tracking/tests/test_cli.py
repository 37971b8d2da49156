"""`deepwork track`, run as a process beside agents."""

from __future__ import annotations

import getpass
import json

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def recorded(repo):
    """Let an agent record a workflow with everything, and give its id and that of its blocker."""
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow(name="Login <b>*now*</b>", scope="src", constraints="no\nframework")
        phase_id = await agent.phase(workflow_id, name="Design", description="first")
        task_id = await agent.task(workflow_id, phase_id, name="write", areas=["src"])
        repo.write("src/a`b.py")
        repo.write("README.md", "changed\n")
        log = {"task_id": task_id}
        decision = {
            "category": "trade_off",
            "question": "Which?",
            "chosen": "this",
            "reasoning": "short",
            "trade_offs": "t",
        }
        await agent.call("log_decision", **log, **decision, options_considered=["this", "that"])
        issue = {"type": "unclear_requirement", "description": "Which key?", "resolution": "guessed"}
        blocker = await agent.call("log_issue", **log, **issue, requires_human_review=True)
        await agent.call("log_milestone", **log, message="half", progress=50)
        await agent.complete(task_id, achievements=["a"], next_steps=["n"], manual_review_needed=True)
        await agent.call("complete_phase", phase_id=phase_id, status="completed", summary="fine")
        await agent.end(workflow_id, "partial", limitations=["one"])
    return workflow_id, blocker["issue_id"]


@pytest.mark.smoke
async def test_workflows_are_listed_shown_and_their_blockers_resolved(shared, recorded):
    workflow_id, issue_id = recorded
    listed = shared.run("track", "list")
    assert f"{workflow_id}  FAILED  phase 1/3, 1 tasks (0 running)  1 blockers  Login" in listed.stdout
    output = shared.run("track", "show", workflow_id).stdout
    for text in ("1. Design  COMPLETED", "SUCCESS  write  (ann", "M README.md", "A src/a`b.py", "warning: 1 file(s)"):
        assert text in output
    assert "decision (write): Which? this\n   short\nmilestone (write): half (50 %)\n" in output
    blockers = shared.run("track", "blockers").stdout
    assert f"{issue_id}  UNCLEAR_REQUIREMENT" in blockers
    assert "tried: guessed" in blockers
    resolved = shared.run_at_terminal("track", "resolve", issue_id, "--note", "the red one")
    assert resolved.stdout == f"{issue_id} is resolved by {getpass.getuser()}.\n"
    assert shared.run("track", "blockers").stderr == "No blockers.\n"
    again = shared.run_at_terminal("track", "resolve", issue_id)
    assert again.returncode == 1
    assert f"Error: issue {issue_id!r} was resolved by {getpass.getuser()} at " in again.stderr
    async with shared.tracker() as agent:
        context = await agent.context(workflow_id, "blockers")
    assert context["has_blockers"] is False
    report = json.loads(shared.run("track", "show", workflow_id, "--json").stdout)
    (issue,) = report["issues"]
    assert issue["resolved_by"] == getpass.getuser()
    assert issue["resolved_note"] == "the red one"
    assert report["blockers"] == []


async def test_every_command_prints_json_for_programs(repo, recorded):
    workflow_id, issue_id = recorded
    (row,) = json.loads(repo.run("track", "list", "--json").stdout)["workflows"]
    assert (row["workflow_id"], row["blockers"], row["tasks"]) == (workflow_id, 1, {"total": 1, "in_progress": 0})
    (blocker,) = json.loads(repo.run("track", "blockers", "--json").stdout)["blockers"]
    assert (blocker["id"], blocker["workflow_id"]) == (issue_id, workflow_id)
    report = json.loads(repo.run("track", "export", workflow_id, "--json").stdout)
    assert report["tasks"][0]["files_changed"]["added"] == ["src/a`b.py"]
    assert report["tasks"][0]["verification"]["unexpected_files"] == ["README.md"]
    assert report["metrics"]["files_changed"] == 2
    resolved = json.loads(repo.run_at_terminal("track", "resolve", issue_id, "--by", "Eve", "--json").stdout)
    assert resolved["resolved_by"] == "Eve"


async def test_a_report_has_all_that_was_recorded_and_no_markup_of_agents(repo, recorded):
    workflow_id, _ = recorded
    text = repo.run("track", "export", workflow_id).stdout
    assert text.startswith("# Login \\<b\\>\\*now\\*\\</b\\>\n\nFAILED, ")
    for part in (
        *("## Objective\n\n> o\n", "## Scope\n\n> src\n", "## Constraints\n\n> no\n> framework\n"),
        *("## Summary\n\n> all\n", "## Limitations\n\n- one\n", "- files changed: 2\n"),
        *("## Phase 1: Design (COMPLETED)\n", "> fine\n", "### write (SUCCESS)\n", "Next steps:\n\n- n\n"),
        *("Files:\n\n- M `README.md`\n- A `` src/a`b.py ``\n", "**A person has to look at this.**"),
        *("## Decisions\n\n### Which?\n\n**this** (TRADE_OFF, write)\n", "Considered:\n\n- this\n- that\n"),
        *("(waits for a person)\n\n> Which key?\n", "write: half (50 %)"),
    ):
        assert part in text


async def test_an_unknown_id_is_an_error_in_words_for_people(repo):
    cases = [("workflow", "show", "tw_0"), ("workflow", "export", "tw_0"), ("issue", "resolve", "iss_0")]
    for kind, *arguments in cases:
        result = repo.run_at_terminal("track", *arguments)
        assert result.returncode == 1
        assert result.stdout == ""
        assert f"Error: there is no {kind} {arguments[1]!r}" in result.stderr
    assert "No workflows." in repo.run("track", "list").stderr
