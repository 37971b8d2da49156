"""Templates and their variables."""

from __future__ import annotations

import tracemalloc

import pytest

pytestmark = pytest.mark.anyio


async def apply(agent, definition, *, name="t", **more):
    template_id = (await agent.call("template_create", name=name, template=definition))["id"]
    answer = await agent.call("template_apply", template_id=template_id, workflow_name="w", **more)
    return await agent.call("workflow_get", id=answer["workflow_id"], include_tasks=True)


async def test_an_applied_template_is_a_ready_workflow_with_its_variables_filled_in(agent, make_task):
    definition = {
        "tasks": [make_task("build {{what}}"), make_task("ship {{what}}", "build {{what}}", parallel_group="{{what}}")],
        "variables": [
            {"name": "what", "description": "w", "required": True},
            {"name": "unused", "description": "u", "required": False},
        ],
    }
    workflow = await apply(agent, definition, variables={"what": "{{other}}", "surplus": "x"})
    assert (workflow["status"], workflow["source_type"]) == ("ready", "template")
    assert workflow["plan_summary"] == "Applied template: t"
    # What stands in a value is not replaced again, and groups are not replaced at all.
    assert [task["name"] for task in workflow["tasks"]] == ["build {{other}}", "ship {{other}}"]
    assert [task["status"] for task in workflow["tasks"]] == ["pending", "blocked"]
    assert workflow["tasks"][1]["parallel_group"] == "{{what}}"


async def test_missing_variables_are_all_named_and_defaults_are_used(agent, make_task):
    definition = {
        "tasks": [make_task("{{a}}{{b}}{{c}}{{d}}x")],
        "variables": [
            {"name": "a", "description": "", "required": True, "default": "A"},
            {"name": "b", "description": "", "required": False},
            {"name": "c", "description": "", "required": True},
        ],
    }
    template_id = (await agent.call("template_create", name="t", template=definition))["id"]
    refusal = await agent.refusal("template_apply", template_id=template_id, workflow_name="w")
    assert (refusal["code"], refusal["message"].endswith("c, d")) == ("MISSING_VARIABLES", True)
    assert (await agent.call("workflow_list"))["total"] == 0
    answer = await agent.call(
        "template_apply",
        template_id=template_id,
        workflow_name="w",
        variables={"c": "", "d": "D"},
        max_parallel_tasks=4,
    )
    workflow = await agent.call("workflow_get", id=answer["workflow_id"], include_tasks=True)
    assert ([task["name"] for task in workflow["tasks"]], workflow["max_parallel_tasks"]) == (["ADx"], 4)


@pytest.mark.parametrize(
    ("template", "variables", "message"),
    [
        ([{"description": "{{x}}" * 300}], {"x": "x" * 2**20}, "make a description of 314,572,800 bytes, of task 'a0'"),
        ([{"description": "{{é}}{{é}}"}], {"é": "é" * 2**19}, "make a description of 2,097,152 bytes, of task 'a0'"),
        (
            [{"description": "{{x}}"}] * 9,
            {"x": "x" * 2**20},
            "the plan may have 8,388,608 bytes of text, not 9,437,184",
        ),
        (
            [{"depends_on": ["{{x}}"] * 300}, {"name": "{{x}}"}],
            {"x": "x" * 2**20},
            "name of 1,048,576 characters",
        ),
    ],
    ids=["bomb", "bytes", "sum", "dependencies"],
)
async def test_values_that_would_make_a_text_too_large_are_refused_before_it_is_made(
    agent, make_task, template, variables, message
):
    tasks = [{**make_task(f"a{number}"), **values} for number, values in enumerate(template)]
    template_id = (await agent.call("template_create", name="t", template={"tasks": tasks}))["id"]
    tracemalloc.start()
    refusal = await agent.refusal("template_apply", template_id=template_id, workflow_name="w", variables=variables)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (refusal["code"], message in refusal["message"]) == ("INVALID_INPUT", True), refusal["message"]
    assert peak < 64 * 2**20
    assert (await agent.call("workflow_list"))["total"] == 0


async def test_a_plan_and_a_template_name_no_more_dependencies_than_can_be_looked_at(agent, make_task):
    names = [f"t{number}" for number in range(320)]
    tasks = [make_task(name, *names[:number]) for number, name in enumerate(names)]
    refusal = await agent.refusal("template_create", name="t", template={"tasks": tasks})
    assert refusal["message"] == "depends_on may name 50,000 dependencies in a whole plan, not 51,040"
    assert "name the last ones only" in refusal["suggestion"]
    workflow_id = (await agent.call("workflow_create", name="w", source_type="prompt", source_content="c"))["id"]
    plan = {"summary": "s", "approach": "a", "tasks": tasks}
    assert "50,000 dependencies" in (await agent.refusal("workflow_set_plan", id=workflow_id, plan=plan))["message"]
    plan["tasks"] = tasks[:300]
    assert (await agent.call("workflow_set_plan", id=workflow_id, plan=plan))["tasks_created"] == 300


@pytest.mark.slow
async def test_a_plan_has_eight_mebibytes_of_text_whatever_its_tasks_have(agent, make_task):
    workflow_id = (await agent.call("workflow_create", name="w", source_type="prompt", source_content="c"))["id"]
    tasks = [{**make_task(f"t{number}"), "description": "x" * 2**20} for number in range(8)]
    plan = {"summary": "s", "approach": "a", "tasks": tasks}
    refusal = await agent.refusal("workflow_set_plan", id=workflow_id, plan=plan)
    assert refusal["message"].startswith("the plan may have 8,388,608 bytes of text, not 8,38")
    plan["tasks"] = tasks[:7]
    assert (await agent.call("workflow_set_plan", id=workflow_id, plan=plan))["status"] == "ready"


async def test_names_that_become_equal_are_refused(agent, make_task):
    definition = {"tasks": [make_task("{{a}}"), make_task("{{b}}")]}
    template_id = (await agent.call("template_create", name="t", template=definition))["id"]
    arguments = {"template_id": template_id, "workflow_name": "w", "variables": {"a": "x", "b": "x"}}
    assert (await agent.refusal("template_apply", **arguments))["code"] == "DUPLICATE_TASK_NAME"
    arguments["variables"] = {"a": "x" * 201, "b": "y"}
    assert (await agent.refusal("template_apply", **arguments))["code"] == "INVALID_INPUT"
    assert (await agent.call("workflow_list"))["total"] == 0


async def test_a_definition_is_checked_when_it_is_made(agent, make_task):
    for definition, code in (
        ([make_task("a"), make_task("a")], "DUPLICATE_TASK_NAME"),
        ([make_task("a", "b")], "UNKNOWN_DEPENDENCY"),
        ([make_task("a", "b"), make_task("b", "a")], "DEPENDENCY_CYCLE"),
    ):
        assert (await agent.refusal("template_create", name="t", template={"tasks": definition}))["code"] == code
    for source in ({}, {"template": {"tasks": []}, "from_workflow_id": "wf_x"}):
        assert (await agent.refusal("template_create", name="t", **source))["code"] == "INVALID_INPUT"


async def test_a_template_of_a_workflow_takes_its_plan_and_nothing_that_happened(agent, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("a", parallel_group="g", estimated_complexity="low", files_likely_affected=["f"]),
        make_task("b", "a", sequence=2, required_capabilities=["x"]),
    )
    await agent.finish(tasks["a"])
    template_id = (await agent.call("template_create", name="t", from_workflow_id=workflow_id))["id"]
    (template,) = (await agent.call("template_list"))["templates"]
    assert (template["id"], template["version"]) == (template_id, 1)
    assert template["template"]["tasks"] == [
        {
            "name": "a",
            "description": "Do a",
            "sequence": 1,
            "parallel_group": "g",
            "estimated_complexity": "low",
            "files_likely_affected": ["f"],
        },
        {"name": "b", "description": "Do b", "sequence": 2, "depends_on": ["a"], "required_capabilities": ["x"]},
    ]
    refusal = await agent.refusal("template_create", name="t", from_workflow_id=workflow_id)
    assert refusal["code"] == "DUPLICATE_TEMPLATE"
    empty, _ = await agent.workflow()
    assert (await agent.refusal("template_create", name="u", from_workflow_id=empty))["code"] == "INVALID_STATE"
