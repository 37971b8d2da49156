"""The ten tools, called by agents: what they answer, refuse and keep."""

from __future__ import annotations

import json
import re

import anyio
import pytest

from deepwork_tracking.tools import INSTRUCTIONS

pytestmark = pytest.mark.anyio

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NAMES = [
    *("start_workflow", "complete_workflow", "get_context", "start_phase", "complete_phase"),
    *("start_task", "complete_task", "log_decision", "log_issue", "log_milestone"),
]


async def test_a_whole_workflow_goes_as_the_specification_says(shared):
    async with shared.tracker() as agent:
        workflow = await agent.call("start_workflow", name="Login", objective="Users log in", profile="complex")
        workflow_id = workflow["workflow_id"]
        assert re.fullmatch("tw_[0-9a-z]{12}", workflow_id)
        assert TIME.fullmatch(workflow.pop("created_at"))
        assert workflow == {"workflow_id": workflow_id, "profile": "COMPLEX", "total_phases": 4}

        phase = await agent.call("start_phase", workflow_id=workflow_id, number=2, name="Design", is_parallel=True)
        phase_id = phase["phase_id"]
        assert TIME.fullmatch(phase.pop("started_at"))
        about = {"phase_id": phase_id, "workflow_id": workflow_id, "number": 2, "name": "Design"}
        assert phase == {**about, "is_parallel": True, "status": "IN_PROGRESS"}

        task = await agent.start(workflow_id, phase_id, areas=["src"])
        assert TIME.fullmatch(task.pop("started_at"))
        task_id = task["task_id"]
        assert task == {
            "task_id": task_id,
            "workflow_id": workflow_id,
            "phase_id": phase_id,
            "phase_number": 2,
            "phase_name": "Design",
            "caller_type": "subagent",
            "agent_name": "ann",
            "snapshot_id": shared.git("rev-parse", "HEAD"),
            "snapshot_type": "git",
        }
        shared.write("src/login.py")
        done = await agent.complete(task_id, "partial_success")
        seconds = done.pop("duration_seconds")
        assert isinstance(seconds, int)
        assert done == {
            "task_id": task_id,
            "workflow_id": workflow_id,
            "files_changed": {"added": ["src/login.py"], "modified": [], "deleted": []},
            "verification": {
                "scope_match": True,
                "unexpected_files": [],
                "changed_before_start": [],
                "warnings": [],
            },
            "phase_status": "in_progress",
        }
        ended = await agent.call("complete_phase", phase_id=phase_id, status="completed", summary="designed")
        assert TIME.fullmatch(ended.pop("completed_at"))
        assert ended.pop("duration_ms") >= 0
        counts = {"total": 1, "success": 0, "partial": 1, "failed": 0, "in_progress": 0}
        assert ended == {**about, "status": "COMPLETED", "tasks": counts, "warnings": []}

        metrics = {"total_phases": 1, "total_tasks": 1, "duration": seconds, "files_changed": 1}
        finished = await agent.end(workflow_id, "partial", achievements=["it works"])
        assert finished == {"workflow_id": workflow_id, "status": "partial", "metrics": metrics}
        context = await agent.context(workflow_id, "phase_summary", "tasks")
        assert context["workflow_status"] == "FAILED"
        assert context["current_phase"] == 2
        assert context["summary"] == "all"
        assert context["achievements"] == ["it works"]
        assert context["phase_summary"][0]["tasks"] == {"total": 1, "completed": 1, "failed": 0, "in_progress": 0}


async def test_the_tools_have_their_names_alone_and_a_prefix_beside_others(repo):
    async with repo.tracker() as agent:
        assert sorted(tool.name for tool in await agent.client.list_tools()) == sorted(NAMES)
    assert len(INSTRUCTIONS) <= 300
    async with repo.tracker(tools=("tracking", "core")) as agent:
        names = {tool.name for tool in await agent.client.list_tools()}
        assert {f"track_{name}" for name in NAMES} < names
        assert "start_workflow" in names
        await agent.call("track_start_workflow", name="w", objective="o")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("start_workflow", {"name": "w", "objective": "o", "total_phases": "3"}),
        ("start_workflow", {"name": "w", "objective": "o", "total_phases": True}),
        ("start_workflow", {"name": "w", "objective": "o", "total_phases": 101}),
        ("start_workflow", {"name": "w", "objective": "o", "profile": "SIMPLE"}),
        ("start_workflow", {"name": "w" * 201, "objective": "o"}),
        ("start_workflow", {"name": "", "objective": "o"}),
        ("start_workflow", {"name": 7, "objective": "o"}),
        ("start_workflow", {"name": "w", "objective": "o", "goal": "g"}),
        ("start_phase", {"workflow_id": "tw_1", "number": 0, "name": "p"}),
        ("start_phase", {"workflow_id": "tw_1", "number": 1.5, "name": "p"}),
        ("start_phase", {"workflow_id": "tw_1", "number": 1, "name": "p", "is_parallel": 1}),
        ("start_phase", {"workflow_id": "tw_1", "number": 1, "name": "p", "is_parallel": "true"}),
        ("get_context", {"workflow_id": "tw_1", "include": ["everything"]}),
        ("get_context", {"workflow_id": "tw_1", "include": [], "filter": {"phases": 1}}),
        ("get_context", {"workflow_id": "tw_1", "include": [], "filter": {"phase": "1"}}),
        ("complete_task", {"task_id": "tt_1", "status": "success", "outcome": {"summary": ""}}),
        ("complete_task", {"task_id": "tt_1", "status": "success", "outcome": {"summary": "s", "more": 1}}),
        ("complete_task", {"task_id": "tt_1", "status": "SUCCESS", "outcome": {"summary": "s"}}),
        ("complete_phase", {"phase_id": "ph_1", "status": "partial"}),
        ("log_milestone", {"task_id": "tt_1", "message": "m", "progress": 101}),
        ("log_milestone", {"task_id": "tt_1", "message": "m", "progress": True}),
        ("log_milestone", {"task_id": "tt_1", "message": "m", "progress": "50"}),
        ("log_issue", {"task_id": "tt_1", "type": "bug", "description": "d", "resolution": "r"}),
    ],
)
async def test_arguments_are_taken_as_their_schemas_say_and_not_otherwise(repo, tool, arguments):
    async with repo.tracker() as agent:
        assert "wrong arguments; nothing was changed" in await agent.refused(tool, **arguments)


async def test_null_means_that_an_optional_argument_is_left_out(repo):
    async with repo.tracker() as agent:
        workflow = await agent.call("start_workflow", name="w", objective="o", profile=None, total_phases=None)
        assert workflow["profile"] == "STANDARD"
        assert workflow["total_phases"] == 3
        phase = await agent.call(
            "start_phase", workflow_id=workflow["workflow_id"], number=1, name="p", is_parallel=None
        )
        assert phase["is_parallel"] is False


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_context", {"workflow_id": "tw_0", "include": []}),
        ("complete_workflow", {"workflow_id": "tw_0", "status": "completed", "summary": "s"}),
        ("start_phase", {"workflow_id": "tw_0", "number": 1, "name": "p"}),
        ("complete_phase", {"phase_id": "ph_0", "status": "completed"}),
        ("complete_task", {"task_id": "tt_0", "status": "success", "outcome": {"summary": "s"}}),
        ("log_milestone", {"task_id": "tt_0", "message": "m"}),
        (
            "start_task",
            {"workflow_id": "tw_0", "phase_id": "ph_0", "caller_type": "orchestrator", "name": "t", "goal": "g"},
        ),
    ],
)
async def test_an_unknown_id_is_an_error_that_names_it(repo, tool, arguments):
    async with repo.tracker() as agent:
        error = await agent.error(tool, **arguments)
    assert error["error"] is True
    assert error["code"] == "NOT_FOUND"
    assert error["recoverable"] is False
    assert "_0'" in error["message"]
    assert error["suggestion"]


async def test_text_that_no_database_can_hold_is_refused_by_the_name_of_its_field(shared):
    async with shared.tracker() as agent:
        error = await agent.error("start_workflow", name="w", objective="a\0b")
        assert error["code"] == "VALIDATION_ERROR"
        assert error["message"].startswith("objective: ")
        _, _, task_id = await agent.running()
        error = await agent.error("log_milestone", task_id=task_id, message="m", metadata={"deep": ["\0"]})
        assert error["message"].startswith("metadata.deep[0]: ")


async def test_a_phase_that_exists_is_given_again_and_changes_nothing(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        first = await agent.call("start_phase", workflow_id=workflow_id, number=1, name="old", is_parallel=True)
        await agent.call("complete_phase", phase_id=first["phase_id"], status="completed")
        await agent.phase(workflow_id, 2)
        await agent.end(workflow_id)
        again = await agent.call("start_phase", workflow_id=workflow_id, number=1, name="new")
        assert again == {**first, "status": "COMPLETED", "already_exists": True}
        context = await agent.context(workflow_id)
        assert context["current_phase"] == 2
        assert context["workflow_status"] == "COMPLETED"


async def test_two_starts_of_a_phase_at_once_make_one_phase(shared):
    async with shared.tracker() as agent, shared.other_tracker() as other:
        workflow_id = await agent.workflow()
        answers = []

        async def start(who, name):
            answers.append(await who.call("start_phase", workflow_id=workflow_id, number=1, name=name))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(start, agent, f"here {number}")
                tasks.start_soon(start, other, f"there {number}")
        assert len({(answer["phase_id"], answer["name"]) for answer in answers}) == 1
        assert sum("already_exists" in answer for answer in answers) == 7


async def test_of_several_completions_at_once_exactly_one_wins(shared):
    async with shared.tracker() as agent, shared.other_tracker() as other:
        workflow_id, _, task_id = await agent.running()
        outcomes = []

        async def complete(who, summary):
            arguments = {"task_id": task_id, "status": "success", "outcome": {"summary": summary}}
            result = await who.client.call_tool("complete_task", arguments, raise_on_error=False)
            outcomes.append((summary, json.loads(result.content[0].text)))

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(complete, agent, f"here {number}")
                tasks.start_soon(complete, other, f"there {number}")
        winners = [summary for summary, answer in outcomes if "error" not in answer]
        assert len(winners) == 1
        assert {answer["code"] for _, answer in outcomes if "error" in answer} == {"VALIDATION_ERROR"}
        assert (await agent.context(workflow_id, "tasks"))["tasks"][0]["summary"] == winners[0]


async def test_a_second_end_of_a_workflow_gives_the_stored_result_with_a_warning(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        first = await agent.end(workflow_id, "completed")
        again = await agent.end(workflow_id, "failed", limitations=["none"])
        assert again.pop("warnings") == ["the workflow was already completed as 'completed'; nothing was changed"]
        assert again == first
        assert "limitations" not in await agent.context(workflow_id)


async def test_the_end_of_a_workflow_warns_of_what_is_open(repo):
    async with repo.tracker() as agent:
        workflow_id, _, _ = await agent.running()
        assert (await agent.end(workflow_id))["warnings"] == [
            "1 phase(s) still in progress",
            "1 task(s) still in progress",
        ]


async def test_new_work_opens_a_finished_workflow_again_and_its_end_counts_anew(repo):
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        await agent.complete(task_id)
        await agent.end(workflow_id)
        task = await agent.start(workflow_id, phase_id)
        assert "COMPLETED; it is IN_PROGRESS again" in task["warnings"][0]
        await agent.complete(task["task_id"])
        assert (await agent.context(workflow_id))["workflow_status"] == "IN_PROGRESS"
        assert (await agent.end(workflow_id, "failed"))["metrics"]["total_tasks"] == 2
        phase = await agent.call("start_phase", workflow_id=workflow_id, number=9, name="p")
        assert "FAILED; it is IN_PROGRESS again" in phase["warnings"][0]
        ended = await agent.end(workflow_id, "completed")
        assert ended["status"] == "completed"
        assert ended["metrics"]["total_phases"] == 2


async def test_a_refused_task_does_not_open_a_finished_workflow(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        phase_id = await agent.phase(workflow_id)
        await agent.call("complete_phase", phase_id=phase_id, status="failed")
        await agent.end(workflow_id)
        who = {"caller_type": "orchestrator", "name": "t", "goal": "g"}
        error = await agent.error("start_task", workflow_id=workflow_id, phase_id=phase_id, **who)
        assert "FAILED: cannot add tasks" in error["message"]
        assert (await agent.context(workflow_id))["workflow_status"] == "COMPLETED"


async def test_a_task_needs_a_phase_and_a_parent_of_its_own_workflow_and_a_name_for_its_agent(repo):
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        other_workflow, other_phase, other_task = await agent.running()
        who = {"caller_type": "subagent", "agent_name": "ann", "name": "t", "goal": "g"}
        place = {"workflow_id": workflow_id, "phase_id": phase_id}
        error = await agent.error("start_task", **{**place, "phase_id": other_phase}, **who)
        assert f"belongs to workflow {other_workflow!r}" in error["message"]
        error = await agent.error("start_task", **place, **who, parent_task_id=other_task)
        assert f"belongs to workflow {other_workflow!r}" in error["message"]
        error = await agent.error("start_task", **place, **{**who, "agent_name": None})
        assert error["message"] == "agent_name is required when caller_type is 'subagent'"
        await agent.complete(task_id)
        error = await agent.error("start_task", **place, **who, parent_task_id=task_id)
        assert "is SUCCESS, not IN_PROGRESS" in error["message"]


async def test_a_task_cannot_end_before_the_tasks_below_it(repo):
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        child = await agent.task(workflow_id, phase_id, parent_task_id=task_id, name="child")
        outcome = {"summary": "s"}
        error = await agent.error("complete_task", task_id=task_id, status="success", outcome=outcome)
        assert child in error["message"]
        assert "(child)" in error["message"]
        await agent.complete(child)
        await agent.complete(task_id)
        error = await agent.error("complete_task", task_id=task_id, status="failed", outcome=outcome)
        assert "is SUCCESS, not IN_PROGRESS" in error["message"]


async def test_a_phase_ends_once_also_while_its_tasks_run_and_they_can_still_end(repo):
    async with repo.tracker() as agent:
        _, phase_id, task_id = await agent.running()
        ended = await agent.call("complete_phase", phase_id=phase_id, status="failed")
        assert ended["warnings"] == ["1 task(s) still in progress"]
        error = await agent.error("complete_phase", phase_id=phase_id, status="completed")
        assert "is FAILED, not IN_PROGRESS" in error["message"]
        assert (await agent.complete(task_id))["phase_status"] == "failed"


async def test_what_was_asked_for_of_a_task_is_kept_and_shown_as_far_as_it_is_not_empty(repo):
    async with repo.tracker() as agent:
        workflow_id, _, task_id = await agent.running()
        results = {"achievements": ["a"], "limitations": [], "next_steps": ["n"], "manual_review_needed": True}
        metadata = {"packages_added": ["p"], "tests_status": "not_run"}
        arguments = {"status": "failed", "outcome": {"summary": "s", **results}, "metadata": metadata}
        await agent.call("complete_task", task_id=task_id, **arguments)
        (task,) = (await agent.context(workflow_id, "tasks"))["tasks"]
        assert task["status"] == "FAILED"
        assert task["caller_type"] == "SUBAGENT"
        assert task["achievements"] == ["a"]
        assert "limitations" not in task
        assert task["next_steps"] == ["n"]
        assert task["manual_review_needed"] is True
        assert task["packages_added"] == ["p"]
        assert task["tests_status"] == "NOT_RUN"


async def test_decisions_issues_and_milestones_are_kept_also_of_a_task_that_has_ended(shared):
    async with shared.tracker() as agent:
        workflow_id, _, task_id = await agent.running()
        await agent.complete(task_id)
        decision = await agent.call(
            "log_decision",
            task_id=task_id,
            category="library_choice",
            question="q",
            options_considered=["a", "b"],
            chosen="a",
            reasoning="r",
        )
        issue = {"task_id": task_id, "description": "d", "resolution": "r"}
        await agent.call("log_issue", **issue, type="bug_encountered")
        blocker = await agent.call("log_issue", **issue, type="documentation_gap", requires_human_review=True)
        for progress in (33, 66.5, None):
            more = {"progress": progress} if progress else {"metadata": {"b": 1, "a": [True, "é"]}}
            await agent.call("log_milestone", task_id=task_id, message="m", **more)
        context = await agent.context(workflow_id, "decisions", "milestones", "blockers")
    assert decision["task_id"] == task_id
    whose = {"task_id": task_id, "task_name": "t", "agent_name": "ann"}
    assert context["decisions"] == [
        {
            "id": decision["decision_id"],
            **whose,
            "category": "LIBRARY_CHOICE",
            "question": "q",
            "options_considered": ["a", "b"],
            "chosen": "a",
            "reasoning": "r",
            "trade_offs": None,
            "created_at": decision["created_at"],
        }
    ]
    assert context["blockers"] == [
        {
            "id": blocker["issue_id"],
            **whose,
            "type": "DOC_GAP",
            "description": "d",
            "resolution": "r",
            "created_at": blocker["created_at"],
        }
    ]
    assert context["has_blockers"] is True
    assert [milestone["progress"] for milestone in context["milestones"]] == [None, 66.5, 33]
    assert json.dumps(context["milestones"][0]["metadata"]) == '{"b": 1, "a": [true, "\\u00e9"]}'


async def test_rows_can_be_filtered_by_phase_agent_and_time(shared):
    async with shared.tracker() as agent:
        workflow_id, _, first = await agent.running()
        second_phase = await agent.phase(workflow_id, 2)
        second = await agent.start(workflow_id, second_phase, agent_name="bob")
        await agent.call("log_milestone", task_id=first, message="late")

        async def names(**filter_):
            context = await agent.context(workflow_id, "tasks", "milestones", "phase_summary", **filter_)
            assert len(context["phase_summary"]) == 2
            assert context["filters_applied"] == {"phase": None, "agent": None, "since": None, **filter_}
            assert context["tasks_count"] == len(context["tasks"])
            return [task["agent_name"] for task in context["tasks"]], context["milestones_count"]

        assert await names(phase=2) == (["bob"], 0)
        assert await names(agent="ann") == (["ann"], 1)
        assert await names(agent="ANN") == ([], 0)
        assert await names(since=second["started_at"]) == (["bob"], 1)
        assert await names(since="2001-01-01T00:00:00") == (["ann", "bob"], 1)
        assert await names(since="2001-01-01T00:00:00-11:00", phase=1) == (["ann"], 1)
        unknown = await agent.context(workflow_id, "tasks", "blockers", phase=7)
        assert unknown["tasks"] == []
        assert unknown["has_blockers"] is False
        assert unknown["warning"] == "the workflow has no phase 7"
        error = await agent.error("get_context", workflow_id=workflow_id, include=[], filter={"since": "yesterday"})
        assert "'yesterday' is not a time" in error["message"]


async def test_lists_hold_the_newest_200_rows_and_counts_count_all(repo):
    async with repo.tracker() as agent:
        workflow_id, _, task_id = await agent.running()
        for number in range(205):
            await agent.call("log_milestone", task_id=task_id, message=str(number))
        context = await agent.context(workflow_id, "milestones")
    assert context["milestones_count"] == 205
    assert [milestone["message"] for milestone in context["milestones"]] == [str(n) for n in range(204, 4, -1)]


async def test_a_database_that_does_not_answer_is_an_error_of_the_same_shape(repo, monkeypatch):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    async with repo.tracker() as agent:
        error = await agent.error("start_workflow", name="w", objective="o")
    assert error["code"] == "DATABASE_ERROR"
    assert error["recoverable"] is True
