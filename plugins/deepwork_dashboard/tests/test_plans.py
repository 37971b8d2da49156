"""Plans, their tasks, agents and messages, over HTTP."""

from __future__ import annotations

import pytest


def test_a_plan_shows_what_is_next_and_who_works_on_it(filled, markup):
    dash, ids = filled
    [row] = dash.get("api/plans")["items"]
    assert (row["id"], row["done"], row["total"]) == (ids["plan"], 0, 4)
    plan = dash.get(f"api/plans/{ids['plan']}")
    assert plan["source_content"] == markup
    assert [agent["id"] for agent in plan["agents"]] == [ids["worker"]]
    assert [task["name"] for task in plan["human_tasks"]] == ["ask"]
    assert plan["running"] == 1
    assert dash.get("api/plans?q=nothing")["items"] == []


def test_the_graph_of_a_plan_is_rows_and_pairs_of_positions(filled):
    dash, ids = filled
    graph = dash.get(f"api/plans/{ids['plan']}/graph")
    names = [row[1] for row in graph["rows"]]
    assert sorted(names) == ["ask", "check", "import", "schema"]
    edges = {(names[needed], names[task]) for needed, task in graph["edges"]}
    assert edges == {("schema", "import"), ("import", "check")}
    assert graph["agents"] == {ids["worker"]: "Worker"}
    assert dict(zip(graph["columns"], graph["rows"][names.index("check")], strict=True))["status"] == "blocked"


def test_the_tasks_of_a_plan_are_found_by_status_agent_and_words(filled):
    dash, ids = filled
    for query, names in (
        ("status=blocked", ["import", "check"]),
        (f"agent={ids['worker']}", ["schema"]),
        ("q=impo", ["import"]),
        ("", ["ask", "schema", "import", "check"]),
    ):
        items = dash.get(f"api/plans/{ids['plan']}/tasks?{query}")["items"]
        assert [item["name"] for item in items] == names, query


def test_a_task_shows_its_claim_its_checkpoints_and_why_it_is_blocked(filled, markup):
    dash, ids = filled
    schema = dash.get(f"api/tasks/{ids['tasks']['schema']}")
    assert schema["claim"]["agent"] == {"id": ids["worker"], "thing": f"agent:{ids['worker']}", "name": "Worker"}
    assert schema["claim"]["lease_until"] > schema["claim"]["claimed_at"]
    assert [(item["summary"], item["files_changed"]) for item in schema["checkpoints"]] == [(markup, ["a.py"])]
    check = dash.get(f"api/tasks/{ids['tasks']['check']}")
    [waits] = check["waits_for"]
    assert (waits["name"], waits["waits_for"][0]["name"]) == ("import", "schema")
    assert waits["waits_for"][0]["agent"] == ids["worker"]
    assert [task["name"] for task in schema["needed_by"]] == ["import"]


def test_agents_show_what_they_hold_and_until_when(filled):
    dash, ids = filled
    agents = {agent["id"]: agent for agent in dash.get("api/agents")["items"]}
    worker = agents[ids["worker"]]
    assert [task["name"] for task in worker["tasks"]] == ["schema"]
    assert worker["lease_until"]
    assert agents[ids["lead"]]["unread"] == 1
    assert dash.get(f"api/agents/{ids['worker']}") == worker
    assert [agent["id"] for agent in dash.get("api/agents?role=coordinator")["items"]] == [ids["lead"]]


def test_messages_show_who_wrote_to_whom(filled, markup):
    dash, ids = filled
    [message] = dash.get(f"api/messages?agent={ids['lead']}&q=onerror")["items"]
    assert (message["from"]["name"], message["to"]["name"], message["body"]) == ("Worker", "Lead", {"deep": markup})


@pytest.mark.anyio
async def test_a_task_that_has_ended_says_who_held_it(project):
    """Also if it was claimed by others before; a task without a claim has no name."""
    async with project.agent("orchestration") as agent:
        plan = (await agent.call("workflow_create", name="q3", source_type="custom", source_content="x"))["id"]
        tasks = [{"name": name, "description": name, "sequence": 1} for name in ("vat", "fees", "sums")]
        await agent.call("workflow_set_plan", id=plan, plan={"summary": "s", "approach": "a", "tasks": tasks})
        listed = await agent.call("workflow_get", id=plan, include_tasks=True)
        ids = {task["name"]: task["id"] for task in listed["tasks"]}
        ann, bob = [(await agent.call("agent_register", name=name, runtime="codex"))["id"] for name in ("Ann", "Bob")]
        await agent.call("task_claim", task_id=ids["vat"], agent_id=ann)
        await agent.call("task_release", task_id=ids["vat"], agent_id=ann)
        await agent.call("task_claim", task_id=ids["vat"], agent_id=bob)
        await agent.call("task_claim", task_id=ids["sums"], agent_id=ann)
        for status in ("planning", "in_progress", "failed"):
            for name, who in (("vat", {"agent_id": bob}), ("fees", {})):
                await agent.call("task_update_status", id=ids[name], status=status, error="broke", **who)
    with project.dashboard() as dash:
        ended = {name: dash.get(f"api/tasks/{task_id}")["ended_by"] for name, task_id in ids.items()}
        assert ended == {"vat": {"id": bob, "thing": f"agent:{bob}", "name": "Bob"}, "fees": None, "sums": None}
        failed = dash.get("api/events?event=task:updated&q=vat&limit=1")["items"][0]
        assert (failed["what"], failed["by"]) == ("Task failed", {"name": "Bob", "thing": f"agent:{bob}"})
