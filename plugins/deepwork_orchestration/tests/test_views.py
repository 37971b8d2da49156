"""What pages show of plans: nothing is changed by looking, and amounts are bounded."""

from __future__ import annotations

import pytest

from deepwork_orchestration import views
from deepwork_orchestration.views import MAX_NODES
from deepwork_sql.pages import ListQuery

pytestmark = pytest.mark.anyio


@pytest.fixture
def look(team):
    """Call a function of the views."""

    async def look(name, *arguments):
        async with team.database() as database:
            return await database.read(lambda transaction: getattr(views, name)(transaction, *arguments))

    return look


async def test_looking_ends_no_claim_whose_lease_has_run_out(team, agent, make_task, look):
    """Calls of agents do; a page that is open must not write."""
    workflow_id, ids = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    await agent.call("task_claim", task_id=ids["a"], agent_id=worker)
    await team.expire(ids["a"])
    before = await team.events()
    task, plan = await look("task", ids["a"]), await look("plan", workflow_id)
    agents = await look("agents", views.AgentFilter(), ListQuery())
    assert (task["claim"]["agent_id"], task["claim"]["lease_until"]) == (worker, 1)
    assert [held["name"] for held in agents.rows[0]["tasks"]] == ["a"]
    assert plan["running"] == 1
    assert await team.events() == before


async def test_why_a_task_waits_is_told_as_a_tree_that_opens_each_task_once(agent, make_task, look):
    _, ids = await agent.workflow(
        make_task("a"), make_task("b", "a"), make_task("c", "a"), make_task("d", "b", "c"), make_task("e", "d")
    )
    [d] = (await look("task", ids["e"]))["waits_for"]
    assert [node["name"] for node in d["waits_for"]] == ["b", "c"]
    names = [[below["name"] for below in node["waits_for"]] for node in d["waits_for"]]
    assert names == [["a"], ["a"]]
    await agent.finish(ids["a"])
    [d] = (await look("task", ids["e"]))["waits_for"]
    assert [node["waits_for"] for node in d["waits_for"]] == [[], []]


async def test_the_tree_of_a_large_plan_is_cut(agent, make_task, look):
    names = [f"t{number}" for number in range(MAX_NODES + 50)]
    _, ids = await agent.workflow(*map(make_task, names), make_task("last", *names))
    task = await look("task", ids["last"])
    assert len(task["waits_for"]) == MAX_NODES
    assert len(task["needs"]) == len(names)


async def test_words_are_searched_as_they_are(agent, make_task, look):
    workflow_id, _ = await agent.workflow(make_task("50% of_it"), make_task("500 often"), name="Plan_A")
    tasks = await look("tasks", workflow_id, views.TaskFilter(), ListQuery(["%", "of_"]))
    assert [row["name"] for row in tasks.rows] == ["50% of_it"]
    assert [row["name"] for row in (await look("plans", None, ListQuery(["PLAN_"]))).rows] == ["Plan_A"]
    assert (await look("plans", None, ListQuery(["plan-"]))).rows == []
    page = await look("find_tasks", ListQuery(["OFTEN"], limit=5))
    assert [(row["name"], row["plan_name"]) for row in page.rows] == [("500 often", "Plan_A")]


async def test_lists_are_given_in_pages_with_their_length(agent, make_task, look):
    workflow_id, _ = await agent.workflow(*(make_task(f"t{number}") for number in range(5)))
    first_page = await look("tasks", workflow_id, views.TaskFilter(), ListQuery(limit=2))
    second_page = await look("tasks", workflow_id, views.TaskFilter(), ListQuery(limit=5, offset=2))
    assert [row["name"] for row in first_page.rows + second_page.rows] == [f"t{number}" for number in range(5)]
    assert (first_page.total, second_page.total) == (5, 5)
