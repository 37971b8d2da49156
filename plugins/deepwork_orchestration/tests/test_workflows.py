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
    there = await agent.call("workflow_list", repository_path="/x/z")
    assert [row["id"] for row in there["workflows"]] == [elsewhere["id"]]
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


async def test_next_tasks_are_free_and_unblocked_in_order_of_sequence(agent, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("late", sequence=2, parallel_group="g"),
        make_task("early", parallel_group="g"),
        make_task("waits", "early"),
        max_parallel_tasks=2,
    )
    worker = await agent.worker()
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    assert [task["name"] for task in answer["tasks"]] == ["early", "late"]
    assert answer["tasks"][0]["parallel_with"] == [tasks["late"]]
    assert answer["tasks"][0]["can_parallelize"] is True
    await agent.call("task_claim", task_id=tasks["early"], agent_id=worker)
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    assert [task["name"] for task in answer["tasks"]] == ["late"]
    counts = {name: answer[name] for name in ("max_parallel", "recommended_count", "running_count", "free_slots")}
    assert counts == {"max_parallel": 2, "recommended_count": 1, "running_count": 1, "free_slots": 1}
    await agent.finish(tasks["early"])
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    waiting = next(task for task in answer["tasks"] if task["name"] == "waits")
    assert (waiting["dependencies_completed"], waiting["can_parallelize"]) == (["early"], False)


@pytest.mark.parametrize("status", ["paused", "completed", "abandoned"])
async def test_a_closed_workflow_hands_out_nothing(agent, make_task, status):
    workflow_id, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    await agent.call("workflow_update_status", id=workflow_id, status="in_progress")
    await agent.call("workflow_update_status", id=workflow_id, status=status)
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    assert (answer["tasks"], answer["workflow_status"]) == ([], status)
    assert (await agent.call("task_get_available", agent_id=worker))["tasks"] == []
    refusal = await agent.refusal("task_claim", task_id=tasks["a"], agent_id=worker)
    assert refusal["code"] == "INVALID_STATE"


async def test_progress_counts_with_all_eight_words(agent, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("a", parallel_group="g"),
        make_task("b", "a", sequence=2, parallel_group="g"),
        make_task("c", sequence=2),
    )
    await agent.finish(tasks["a"])
    await agent.move(tasks["c"], "planning", "in_progress", "failed")
    answer = await agent.call("workflow_progress", workflow_id=workflow_id)
    zero = dict.fromkeys(
        ("pending", "blocked", "planning", "in_progress", "paused", "completed", "failed", "skipped"), 0
    )
    assert answer["by_status"] == {**zero, "pending": 1, "completed": 1, "failed": 1}
    assert (answer["completed_sequence"], answer["current_sequence"], answer["estimated_remaining"]) == (1, 2, 2)
    assert answer["parallel_groups"] == [{"group_id": "g", "task_count": 2, "completed": 1}]
    await agent.move(tasks["c"], "skipped")
    await agent.finish(tasks["b"])
    answer = await agent.call("workflow_progress", workflow_id=workflow_id)
    assert (answer["completed_sequence"], answer["current_sequence"], answer["estimated_remaining"]) == (2, 0, 0)
    assert (await agent.call("workflow_next_tasks", workflow_id=workflow_id))["all_complete"] is True


async def test_blocked_tasks_name_what_they_wait_for(agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"), make_task("b"), make_task("c", "a", "b"))
    await agent.finish(tasks["a"])
    answer = await agent.call("workflow_progress", workflow_id=workflow_id)
    assert answer["blocked_tasks"] == [{"id": tasks["c"], "name": "c", "blocked_by": ["b"]}]
    checked = await agent.call("task_check_dependencies", task_id=tasks["c"])
    assert checked == {
        "satisfied": False,
        "pending": [{"id": tasks["b"], "name": "b", "status": "pending"}],
        "completed": [{"id": tasks["a"], "name": "a", "outcome": "done"}],
    }
    assert (await agent.call("task_get", id=tasks["c"]))["status"] == "blocked"
    refusal = await agent.refusal("task_update_status", id=tasks["c"], status="planning")
    assert (refusal["code"], refusal["recoverable"]) == ("TASK_BLOCKED", True)
    assert "'b'" in refusal["message"]


# Tasks.


async def test_every_transition_of_a_task_and_no_other(agent, make_task):
    allowed = {
        "pending": {"planning"},
        "planning": {"in_progress", "completed"},
        "in_progress": {"completed", "paused", "failed"},
        "paused": {"in_progress"},
        "failed": {"pending", "skipped"},
        "completed": set(),
        "skipped": set(),
    }
    ways = {
        "pending": [],
        "planning": ["planning"],
        "in_progress": ["planning", "in_progress"],
        "paused": ["planning", "in_progress", "paused"],
        "failed": ["planning", "in_progress", "failed"],
        "completed": ["planning", "completed"],
        "skipped": ["planning", "in_progress", "failed", "skipped"],
    }
    names = [f"{current}-{target}" for current in ways for target in [*allowed, "blocked"]]
    _, tasks = await agent.workflow(*map(make_task, names))
    for name in names:
        current, target = name.split("-")
        await agent.move(tasks[name], *ways[current])
        if target in allowed[current]:
            await agent.move(tasks[name], target)
        else:
            refusal = await agent.refusal("task_update_status", id=tasks[name], status=target, outcome="x", error="x")
            assert refusal["code"] == "INVALID_TRANSITION", name


async def test_completed_needs_an_outcome_and_failed_an_error(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    await agent.move(tasks["a"], "planning", "in_progress")
    for status, text, code in (("completed", "outcome", "MISSING_OUTCOME"), ("failed", "error", "MISSING_ERROR")):
        for missing in ({}, {text: ""}, {text: None}):
            refusal = await agent.refusal("task_update_status", id=tasks["a"], status=status, **missing)
            assert (refusal["code"], refusal["recoverable"]) == (code, True)
    await agent.call("task_update_status", id=tasks["a"], status="failed", error="broke", outcome_detail={"log": ["x"]})
    task = await agent.call("task_get", id=tasks["a"])
    assert (task["error"], task["outcome_detail"]) == ("broke", {"log": ["x"]})


async def test_a_task_is_planned_in_planning_and_its_context_is_merged(agent, make_task):
    _, tasks = await agent.workflow(make_task("a", estimated_complexity="low"))
    plan = {"approach": "x" * 300, "steps": ["one"]}
    assert (await agent.refusal("task_set_plan", id=tasks["a"], plan=plan))["code"] == "INVALID_STATE"
    await agent.move(tasks["a"], "planning")
    await agent.call("task_set_plan", id=tasks["a"], plan=plan, context={"k": {"v": 1}})
    task = await agent.call("task_get", id=tasks["a"])
    assert (task["plan"], task["plan_summary"]) == (plan, "x" * 200)
    assert task["context"] == {"estimated_complexity": "low", "k": {"v": 1}}


async def test_a_replanned_task_is_pending_with_a_checkpoint(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    new_plan = {"approach": "otherwise", "steps": []}
    refusal = await agent.refusal("task_replan", id=tasks["a"], reason="r", new_plan=new_plan)
    assert refusal["code"] == "INVALID_STATE"
    await agent.move(tasks["a"], "planning", "in_progress", "failed")
    answer = await agent.call("task_replan", id=tasks["a"], reason="wrong way", new_plan=new_plan)
    task = await agent.call("task_get", id=tasks["a"], include_checkpoints=True)
    (point,) = task["checkpoints"]
    assert (point["id"], point["type"], point["summary"]) == (answer["checkpoint_id"], "replan", "wrong way")
    assert (task["status"], task["plan"], task["error"]) == ("pending", new_plan, None)


async def test_checkpoints_are_numbered_and_the_limit_takes_the_end_that_is_wanted(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    for number in range(1, 5):
        kind = "decision" if number % 2 else "progress"
        answer = await agent.call("checkpoint_add", task_id=tasks["a"], type=kind, summary=str(number))
        assert answer["sequence"] == number

    async def listed(**arguments):
        answer = await agent.call("checkpoint_list", task_id=tasks["a"], **arguments)
        return [point["sequence"] for point in answer["checkpoints"]]

    assert await listed() == [1, 2, 3, 4]
    assert await listed(limit=2) == [1, 2]
    assert await listed(since_sequence=2, limit=1) == [3]
    assert await listed(type=["decision"]) == [1, 3]
    task = await agent.call("task_get", id=tasks["a"], include_checkpoints=True, checkpoint_limit=2)
    assert [point["sequence"] for point in task["checkpoints"]] == [3, 4]
    assert "type" in await agent.refused("checkpoint_add", task_id=tasks["a"], type="replan", summary="x")
