"""What an agent gets back after it has lost its context, and that it never exceeds its budget."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from splintr import Tokenizer

from deepwork_orchestration import context_budget
from deepwork_orchestration import tokens as token_counts

encode = Tokenizer.from_pretrained("o200k_base").encode


def tokens(reply):
    return len(encode(json.dumps(reply, ensure_ascii=False, separators=(",", ":"))))


@pytest.fixture
async def plan(agent, make_task):
    """Four tasks: two are done, `now` has begun, `beside` is its sibling."""
    _, tasks = await agent.workflow(
        make_task("first"),
        make_task("second", "first", sequence=2),
        make_task("now", "second", sequence=3, parallel_group="g"),
        make_task("beside", sequence=3, parallel_group="g"),
    )
    for name in ("first", "second"):
        await agent.move(tasks[name], "planning", "in_progress")
        await agent.call(
            "task_update_status", id=tasks[name], status="completed", outcome="o" * 400, outcome_detail={"n": name}
        )
    await agent.move(tasks["now"], "planning", "in_progress")
    for number in range(7):
        files = [f"{number}-{file}" for file in range(12)]
        await agent.call(
            "checkpoint_add", task_id=tasks["now"], type="progress", summary=str(number), detail={"n": number},
            files_changed=files,
        )  # fmt: skip
    return tasks


@pytest.mark.anyio
async def test_the_context_has_what_the_task_needs(agent, plan):
    context = await agent.call("task_load_context", task_id=plan["now"])
    assert context["workflow"].keys() == {
        "id", "name", "source_type", "source_summary", "plan_summary", "status", "max_parallel_tasks",
    }  # fmt: skip
    assert context["current_task"].keys() == {"id", "name", "description", "plan", "context", "checkpoints", "status"}
    assert [(task["name"], task["outcome"]) for task in context["prior_tasks"]] == [
        ("first", "o" * 300),
        ("second", "o" * 300),
    ]
    assert context["sibling_tasks"] == [{"id": plan["beside"], "name": "beside", "status": "pending"}]
    assert context["dependency_outcomes"] == [{"task_id": plan["second"], "task_name": "second", "outcome": "o" * 400}]
    points = context["current_task"]["checkpoints"]
    assert ["detail" in point for point in points] == [False] * 2 + [True] * 5
    assert points[-1]["files_changed"] == [f"6-{file}" for file in range(10)] + ["and 2 more"]
    assert (context["estimator"], "truncated" in context) == ("o200k_base", False)
    assert context["token_estimate"] == tokens(context)


@pytest.mark.anyio
async def test_parts_are_left_out_or_given_in_full_as_asked(agent, plan):
    switched_off = ["workflow_plan", "workflow_summary", "prior_task_outcomes", "sibling_status", "dependency_outcomes"]
    include = {**dict.fromkeys(switched_off, False), "recent_checkpoints": 0}
    context = await agent.call("task_load_context", task_id=plan["now"], include=include)
    assert context["workflow"].keys() == {"id", "name", "source_type", "status", "max_parallel_tasks"}
    assert (context["prior_tasks"], "sibling_tasks" in context, "dependency_outcomes" in context) == ([], False, False)
    assert not any("detail" in point for point in context["current_task"]["checkpoints"])
    include = {"prior_task_full": True, "all_checkpoints": True, "recent_checkpoints": None}
    context = await agent.call("task_load_context", task_id=plan["now"], include=include)
    assert (context["prior_tasks"][0]["outcome"], context["prior_tasks"][0]["outcome_detail"]) == (
        "o" * 400,
        {"n": "first"},
    )
    assert len(context["current_task"]["checkpoints"][0]["files_changed"]) == 12


@pytest.mark.anyio
async def test_a_sibling_is_summed_up_by_its_newest_checkpoint(agent, plan):
    await agent.call("checkpoint_add", task_id=plan["beside"], type="progress", summary="s" * 300)
    context = await agent.call("task_load_context", task_id=plan["now"])
    assert context["sibling_tasks"][0]["brief_summary"] == "s" * 200


@pytest.mark.anyio
async def test_no_budget_is_exceeded_and_cuts_are_named(agent, plan):
    for budget in (1, 100, 150, 300, 500, 700, 900, 1200):
        context = await agent.call("task_load_context", task_id=plan["now"], max_tokens=budget)
        if context.get("truncated") != [context_budget.ONLY_FLOOR]:
            assert tokens(context) <= context["token_estimate"] <= budget
        assert context["current_task"]["id"] == plan["now"]
        assert budget >= tokens(context) or context["truncated"]
    floor = await agent.call("task_load_context", task_id=plan["now"], max_tokens=1)
    assert floor["workflow"].keys() == floor["current_task"].keys() == {"id", "name", "status"}


@pytest.mark.anyio
async def test_a_long_source_has_at_most_nine_percent_even_if_all_would_fit(agent, make_task):
    long = "word " * 3000
    created = await agent.call("workflow_create", name="long", source_type="prompt", source_content=long)
    plan = {"summary": "s", "approach": "a", "tasks": [make_task("a")]}
    await agent.call("workflow_set_plan", id=created["id"], plan=plan)
    workflow = await agent.call("workflow_get", id=created["id"], include_tasks=True)
    context = await agent.call("task_load_context", task_id=workflow["tasks"][0]["id"], max_tokens=8000)
    source = context["workflow"]["source_summary"]
    assert source.endswith("\n... [truncated]")
    assert 600 < tokens(source) <= 720
    assert context["truncated"] == ["source_summary"]


@pytest.fixture
def counted(monkeypatch):
    """The lengths of the texts that are counted."""
    lengths = []
    exact = token_counts.estimator()

    def count(text):
        lengths.append(len(text))
        return exact.count(text)

    monkeypatch.setattr(token_counts, "estimator", lambda: token_counts.Estimator(exact.name, count))
    return lengths


def test_no_more_is_counted_than_the_budget_can_hold(counted):
    """Megabytes of text are not counted to their end, and thousands of entries not one by one."""
    long = "a word and another. " * 50_000
    point = {"id": "cp", "type": "progress", "summary": "s" * 200, "detail": {"text": long}}
    entry = {"id": "tk", "name": "n", "outcome": long[:300], "status": "completed"}
    content = {
        "workflow": {"id": "wf", "name": "n", "source_summary": long, "plan_summary": long, "status": "ready"},
        "current_task": {
            "id": "tk",
            "name": "n",
            "description": long,
            "plan": {"approach": long},
            "context": {"k": long},
            "checkpoints": [dict(point) for _ in range(300)],
            "status": "in_progress",
        },
        "prior_tasks": [dict(entry) for _ in range(3000)],
        "dependency_outcomes": [dict(entry, outcome=long) for _ in range(50)],
    }
    answer = context_budget.fit(content, 1000)
    assert tokens(answer) <= answer["token_estimate"] <= 1000
    assert max(counted) <= 8 * 1000 * 5
    assert sum(counted) < 2_000_000


@pytest.mark.anyio
async def test_what_no_budget_could_hold_is_left_in_the_database_and_counted_as_omitted(agent, make_task):
    _, tasks = await agent.workflow(
        *(make_task(f"t{number}", sequence=number + 1) for number in range(100)), make_task("now", sequence=200)
    )
    for number in range(30):
        await agent.call("checkpoint_add", task_id=tasks["now"], type="progress", summary=f"{number}")
    include = {"all_checkpoints": True}
    context = await agent.call("task_load_context", task_id=tasks["now"], max_tokens=300, include=include)
    assert context["prior_tasks_omitted"] + len(context["prior_tasks"]) == 100
    assert context["current_task"]["checkpoints_omitted"] + len(context["current_task"]["checkpoints"]) == 30
    assert context["current_task"]["checkpoints"][-1]["summary"] == "29"
    assert {"oldest checkpoints", "oldest prior tasks"} <= set(context["truncated"])
    assert len(set(context["truncated"])) == len(context["truncated"])


# Any state at all.

words = st.text(max_size=200) | st.sampled_from(["", "a" * 5000, "漢字" * 700, '\n\t"\\' * 300, "<|endoftext|>" * 40])
objects = st.none() | st.dictionaries(words, words | st.integers() | st.lists(words, max_size=3), max_size=4)
points = st.fixed_dictionaries(
    {"id": words, "type": st.just("progress"), "summary": words},
    optional={"detail": objects, "files_changed": st.lists(words, max_size=4)},
)
briefs = st.fixed_dictionaries({"id": words, "name": words, "outcome": words, "status": st.just("completed")})
names = st.text(max_size=30)
contexts = st.fixed_dictionaries(
    {
        "workflow": st.fixed_dictionaries(
            {"id": names, "name": names, "status": st.just("ready")},
            optional={"source_summary": words, "plan_summary": words},
        ),
        "current_task": st.fixed_dictionaries(
            {
                "id": names,
                "name": names,
                "description": words,
                "plan": objects,
                "context": objects,
                "checkpoints": st.lists(points, max_size=8),
                "status": st.just("in_progress"),
            }
        ),
        "prior_tasks": st.lists(briefs, max_size=6),
    },
    optional={
        "sibling_tasks": st.lists(briefs, min_size=1, max_size=4),
        "dependency_outcomes": st.lists(briefs, max_size=4),
    },
)


def _bare(section):
    """Leave of a section what cannot be cut by itself."""
    if isinstance(section, list):
        return []
    cut = {
        "source_summary": "",
        "plan_summary": "",
        "description": "",
        "plan": None,
        "context": None,
        "checkpoints": [],
    }
    return {**section, **{name: value for name, value in cut.items() if name in section}}


@given(contexts, st.integers(1, 3000))
@example(
    {
        "workflow": {"id": "", "name": "", "status": "ready", "source_summary": "a" * 5000},
        "current_task": {
            "id": "",
            "name": "",
            "description": "",
            "plan": None,
            "context": None,
            "checkpoints": [],
            "status": "in_progress",
        },
        "prior_tasks": [],
    },
    78,
)
def test_whatever_the_state_is_the_answer_fits_or_is_the_smallest_there_is(context, budget):
    answer = context_budget.fit(context, budget)
    counted = tokens(answer)
    assert counted <= answer["token_estimate"]
    if answer["token_estimate"] > budget:
        assert answer["truncated"] == [context_budget.ONLY_FLOOR]
        assert set(answer["workflow"]) == set(answer["current_task"]) == {"id", "name", "status"}
    source = answer["workflow"].get("source_summary")
    assert not source or tokens(source) <= budget * 9 // 100
    # The source has a share of its own; the others bind when the whole is too long with a source that keeps to it.
    cut = {*answer.get("truncated", ())} - {"source_summary", context_budget.ONLY_FLOOR}
    if cut and tokens(context) > 2 * budget:
        for percent, sections in context_budget.SHARES:
            shares = [(tokens(answer[name]), tokens(_bare(answer[name]))) for name in sections if name in answer]
            share = budget * percent // 100
            assert sum(size for size, _ in shares) <= max(share, sum(least for _, least in shares))
