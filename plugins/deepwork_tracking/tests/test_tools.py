from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_a_whole_workflow_goes_as_the_specification_says(shared):
    async with shared.tracker() as agent:
        workflow = await agent.call("start_workflow", name="Login", objective="Users can log in", profile="complex")
        assert workflow["profile"] == "COMPLEX"
        assert workflow["total_phases"] == 4
        workflow_id = workflow["workflow_id"]
        phase = await agent.call("start_phase", workflow_id=workflow_id, number=1, name="Design")
        assert phase["status"] == "IN_PROGRESS"
        assert phase["is_parallel"] is False
        task = await agent.start(workflow_id, phase["phase_id"], areas=["src"])
        assert task["snapshot_type"] == "git"
        assert task["snapshot_id"] == shared.git("rev-parse", "HEAD")
        assert task["caller_type"] == "subagent"
        shared.write("src/login.py")
        done = await agent.complete(task["task_id"])
        print(done)
        assert done["files_changed"] == {"added": ["src/login.py"], "modified": [], "deleted": []}
        assert done["verification"]["scope_match"] is True
        assert done["phase_status"] == "in_progress"
        ended = await agent.call("complete_phase", phase_id=phase["phase_id"], status="completed")
        print(ended)
        assert ended["tasks"] == {"total": 1, "success": 1, "partial": 0, "failed": 0, "in_progress": 0}
        finished = await agent.call("complete_workflow", workflow_id=workflow_id, status="partial", summary="done")
        assert finished["metrics"] == {"total_phases": 1, "total_tasks": 1, "duration": 0, "files_changed": 1}
        assert finished["status"] == "partial"
        context = await agent.context(workflow_id, "phase_summary", "tasks", "decisions", "milestones", "blockers")
        print(context)
        assert context["workflow_status"] == "FAILED"
