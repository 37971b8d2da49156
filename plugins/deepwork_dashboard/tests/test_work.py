"""What agents have recorded of their work, over HTTP."""

from __future__ import annotations


def test_tracked_work_shows_phases_tasks_with_files_and_what_was_logged(filled):
    dash, ids = filled
    [row] = dash.get("api/work")["items"]
    assert (row["id"], row["blockers"], row["tasks"]["total"]) == (ids["work"], 1, 1)
    work = dash.get(f"api/work/{ids['work']}")
    assert [(phase["number"], phase["name"]) for phase in work["phase_list"]] == [(1, "Design")]
    assert work["counts"] == {"decisions": 1, "issues": 1, "milestones": 1}
    [task] = dash.get(f"api/work/{ids['work']}/tasks?phase=1&agent=ann&q=draw")["items"]
    assert ["A", "drawing <b>.txt"] in task["files"]
    assert dash.get(f"api/work/{ids['work']}/tasks/{ids['work_task']}") == task
    [issue] = dash.get(f"api/work/{ids['work']}/issues")["items"]
    assert (issue["description"], issue["blocks"]) == ("stuck", True)
    [decision] = dash.get(f"api/work/{ids['work']}/decisions?q=r")["items"]
    assert (decision["chosen"], decision["agent"]) == ("c", "ann")
    [milestone] = dash.get(f"api/work/{ids['work']}/milestones")["items"]
    assert (milestone["message"], milestone["progress"]) == ("half", 50)
