"""Workflows and their plans."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytestmark = pytest.mark.anyio

SOURCE = {"source_type": "github_issue", "source_content": "Build it.", "source_ref": "https://example.org/1"}


async def test_a_workflow_begins_in_planning_and_belongs_to_the_project(team, agent):
    created = await agent.call("workflow_create", name="w", **SOURCE)
    assert created == {"id": created["id"], "name": "w", "status": "planning", "max_parallel_tasks": 1}
    assert created["id"].startswith("wf_")
    assert len(created["id"]) == 15
    workflow = await agent.call("workflow_get", id=created["id"])
    assert workflow["auto_create_workspaces"] is False
    assert (workflow["source_ref"], workflow["initial_plan"], workflow["tasks"]) == (SOURCE["source_ref"], None, [])
    repository = await agent.call("repository_list")
    assert [entry["path"] for entry in repository["repositories"]] == [str(team.project.root)]
    assert workflow["repository_id"] == repository["repositories"][0]["id"]


async def test_a_plan_makes_it_ready_and_its_texts_are_kept(agent, make_task):
    plan = {
        "summary": "sum",
        "approach": "how",
        "tasks": [
            make_task("b", sequence=2, parallel_group="g", estimated_complexity="high", files_likely_affected=["f"]),
            make_task("a", "b", "b", sequence=1, parallel_group="g"),
        ],
        "risks": ["none"],
    }
    workflow_id = (await agent.call("workflow_create", name="w", **SOURCE))["id"]
    answer = await agent.call("workflow_set_plan", id=workflow_id, plan=plan)
    assert answer == {"workflow_id": workflow_id, "tasks_created": 2, "parallelizable_groups": 1, "status": "ready"}
    workflow = await agent.call("workflow_get", id=workflow_id, include_tasks=True)
    assert (workflow["plan_summary"], workflow["initial_plan"]["risks"]) == ("sum", ["none"])
    assert [(task["name"], task["sequence"], task["status"]) for task in workflow["tasks"]] == [
        ("a", 1, "blocked"),
        ("b", 2, "pending"),
    ]
    task = await agent.call("task_get", id=workflow["tasks"][1]["id"])
    assert task["context"] == {"estimated_complexity": "high", "files_likely_affected": ["f"]}
    bare = await agent.call("workflow_get", id=workflow_id, include_tasks=True, include_task_summaries=False)
    assert bare["tasks"][0].keys() == {"id", "name", "status", "sequence", "parallel_group"}


@pytest.mark.parametrize(
    ("tasks", "code", "words"),
    [
        ([("a",), ("a",)], "DUPLICATE_TASK_NAME", "'a'"),
        ([("a", "a")], "SELF_DEPENDENCY", "'a'"),
        ([("a", "x")], "UNKNOWN_DEPENDENCY", "'x'"),
        ([("a", "b"), ("b", "a")], "DEPENDENCY_CYCLE", "each for the next: "),
    ],
)
async def test_a_plan_that_cannot_be_finished_changes_nothing(agent, make_task, tasks, code, words):
    workflow_id = (await agent.call("workflow_create", name="w", **SOURCE))["id"]
    plan = {"summary": "s", "approach": "a", "tasks": [make_task(*names) for names in tasks]}
    refusal = await agent.refusal("workflow_set_plan", id=workflow_id, plan=plan)
    assert (refusal["code"], refusal["recoverable"]) == (code, True)
    assert words in refusal["message"]
    workflow = await agent.call("workflow_get", id=workflow_id, include_tasks=True)
    assert (workflow["status"], workflow["tasks"]) == ("planning", [])


async def test_a_cycle_is_spelled_out(agent, make_task):
    workflow_id = (await agent.call("workflow_create", name="w", **SOURCE))["id"]
    tasks = [make_task("x"), make_task("a", "b", "x"), make_task("b", "c"), make_task("c", "a")]
    refusal = await agent.refusal(
        "workflow_set_plan", id=workflow_id, plan={"summary": "s", "approach": "a", "tasks": tasks}
    )
    cycle = refusal["message"].partition(": ")[2].split(" -> ")
    assert cycle[0] == cycle[-1]
    assert sorted(cycle[1:]) == ["'a'", "'b'", "'c'"]
    needs = {"'a'": "'b'", "'b'": "'c'", "'c'": "'a'"}
    assert all(needs[first] == second for first, second in pairwise(cycle))


async def test_a_plan_is_set_once_and_may_be_empty(agent):
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal(
        "workflow_set_plan", id=workflow_id, plan={"summary": "s", "approach": "a", "tasks": []}
    )
    assert refusal["code"] == "INVALID_STATE"
    assert (await agent.call("workflow_next_tasks", workflow_id=workflow_id))["all_complete"] is False


async def test_every_transition_of_the_table_and_no_other(agent, make_task):
    allowed = {
        "planning": {"abandoned"},
        "ready": {"in_progress", "abandoned"},
        "in_progress": {"paused", "completed", "failed", "abandoned"},
        "paused": {"in_progress", "abandoned"},
        "failed": {"in_progress"},
        "completed": set(),
        "abandoned": set(),
    }
    ways = {
        "ready": [],
        "in_progress": ["in_progress"],
        "paused": ["in_progress", "paused"],
        "failed": ["in_progress", "failed"],
        "completed": ["in_progress", "completed"],
        "abandoned": ["abandoned"],
    }
    for current, way in ways.items():
        for target in allowed:
            workflow_id, _ = await agent.workflow()
            for status in way:
                await agent.call("workflow_update_status", id=workflow_id, status=status)
            if target in allowed[current] | {current}:
                await agent.call("workflow_update_status", id=workflow_id, status=target)
            else:
                refusal = await agent.refusal("workflow_update_status", id=workflow_id, status=target)
                assert refusal["code"] == "INVALID_TRANSITION", (current, target)


async def test_without_a_plan_it_cannot_be_made_ready_by_hand(agent):
    workflow_id = (await agent.call("workflow_create", name="w", **SOURCE))["id"]
    refusal = await agent.refusal("workflow_update_status", id=workflow_id, status="ready")
    assert refusal["code"] == "INVALID_TRANSITION"
    assert "workflow_set_plan" in refusal["suggestion"]


async def test_the_first_task_that_starts_starts_the_workflow_and_open_tasks_are_a_warning(agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"), make_task("b"))
    await agent.move(tasks["a"], "planning")
    assert (await agent.call("workflow_get", id=workflow_id))["status"] == "in_progress"
    answer = await agent.call("workflow_update_status", id=workflow_id, status="completed", reason="enough")
    assert answer == {"success": True, "warnings": ["2 tasks are neither completed nor skipped"]}
    assert (await agent.call("workflow_get", id=workflow_id))["config"] == {"last_status_reason": "enough"}
    await agent.move(tasks["a"], "in_progress", "completed")  # what runs may be finished


async def test_lists_are_newest_first_and_filtered(agent):
    first, second = [(await agent.call("workflow_create", name=name, **SOURCE))["id"] for name in "ab"]
    elsewhere = await agent.call("workflow_create", name="c", repository_path="/x//y/../z/", **SOURCE)
    listed = await agent.call("workflow_list")
    assert [row["id"] for row in listed["workflows"]] == [elsewhere["id"], second, first]
    assert listed["workflows"][0].keys() == {"id", "name", "status", "created_at", "updated_at"}
    page = await agent.call("workflow_list", limit=1, offset=1)
    assert ([row["id"] for row in page["workflows"]], page["total"]) == ([second], 3)
    of_repository = await agent.call("workflow_list", repository_path="/x/z")
    assert [row["id"] for row in of_repository["workflows"]] == [elsewhere["id"]]
    assert await agent.call("workflow_list", repository_path="/nowhere") == {"workflows": [], "total": 0}
    assert (await agent.call("workflow_list", status=["ready"]))["total"] == 0
    assert "status" in await agent.refused("workflow_list", status=["nonsense"])


async def test_parallelism_keeps_what_is_left_out(agent):
    workflow_id, _ = await agent.workflow(auto_create_workspaces=True)
    await agent.call("workflow_set_parallelism", id=workflow_id, max_parallel_tasks=3, auto_create_workspaces=None)
    workflow = await agent.call("workflow_get", id=workflow_id)
    assert (workflow["max_parallel_tasks"], workflow["auto_create_workspaces"]) == (3, True)


async def test_the_summary_is_an_object_or_markdown(agent, make_task):
    workflow_id, _ = await agent.workflow(make_task("a"), make_task("b", "a"))
    answer = await agent.call("workflow_get_summary", id=workflow_id)
    assert answer["summary"]["tasks_by_status"] == {"pending": 1, "blocked": 1}
    assert answer["token_estimate"] > 10
    text = await agent.call("workflow_get_summary", id=workflow_id, format="markdown")
    assert text["summary"].startswith("# plan\n")
    assert "- blocked: 1" in text["summary"]


# What is next.


# Tasks.
