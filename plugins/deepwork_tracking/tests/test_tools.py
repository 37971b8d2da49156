"""The ten tools, called by agents: what they answer, refuse and keep."""

from __future__ import annotations

import re

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
        completion = await agent.complete(task_id, "partial_success")
        seconds = completion.pop("duration_seconds")
        assert isinstance(seconds, int)
        assert completion == {
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
