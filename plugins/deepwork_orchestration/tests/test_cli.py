"""`deepwork plan`, as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def database_url(tmp_path):
    """One engine is enough: the commands run what the tools run."""
    return f"sqlite:///{tmp_path}/plans.db"


@pytest.fixture
def deepwork(team):
    def run(*arguments, stdin="", env=None):
        return subprocess.run(
            [sys.executable, "-m", "deepwork", "plan", *arguments], cwd=team.project.root, input=stdin,
            env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=240,
        )  # fmt: skip

    return run


@pytest.fixture
async def plan(agent, make_task):
    """A plan with one task done and one held."""
    workflow_id, tasks = await agent.workflow(
        make_task('a "quoted" <b>'), make_task("b", 'a "quoted" <b>', parallel_group="g"), make_task("c", "b")
    )
    first = tasks['a "quoted" <b>']
    await agent.finish(first)
    worker = await agent.worker("ada\x1b[31m")
    await agent.call("task_claim", task_id=tasks["b"], agent_id=worker)
    await agent.move(tasks["b"], "planning", "in_progress")
    await agent.call("checkpoint_add", task_id=tasks["b"], type="decision", summary="é", detail={"k": [1, None]})
    workspace = await agent.call(
        "workspace_create", workflow_id=workflow_id, path="/w", branch="b", task_ids=[tasks["b"]]
    )
    await agent.call("message_send", sender_id=worker, recipient_id=worker, message_type="query", body="hi\nthere")
    return {"workflow": workflow_id, "worker": worker, "workspace": workspace["id"], **tasks}


async def test_people_see_what_agents_do(deepwork, plan):
    output = deepwork("show").stdout
    assert plan["workflow"] in output
    assert "1 of 3 tasks done" in deepwork("show", plan["workflow"]).stdout
    assert deepwork("next", plan["workflow"]).stderr == "Nothing can be started now.\n0 of 1 places are free.\n"
    assert "in_progress" in deepwork("tasks", plan["workflow"]).stdout
    agents = deepwork("agents").stdout
    assert plan["b"] in agents
    assert "\x1b" not in agents
    messages = deepwork("messages").stdout
    worker = f"agent {plan['worker']} ('ada\\x1b[31m')"
    assert f"{worker} -> {worker}" in messages
    assert messages.endswith("    | hi\n    | there\n")
    why = deepwork("why-blocked", plan["c"]).stdout.splitlines()
    assert why == [
        f"c  ({plan['c']})  blocked",
        f"  b  ({plan['b']})  in_progress, held by {plan['worker']}",
    ]


async def test_a_failed_task_says_who_has_failed_it(deepwork, plan, agent):
    await agent.move(plan["b"], "failed")
    [row] = [line for line in deepwork("tasks", plan["workflow"]).stdout.splitlines() if "failed" in line]
    assert f"ada\\x1b[31m ({plan['worker']})" in row
    tasks = json.loads(deepwork("tasks", plan["workflow"], "--json").stdout)["tasks"]
    who = {"id": plan["worker"], "name": "ada\x1b[31m"}
    assert {task["name"]: task["failed_by"] for task in tasks} == {'a "quoted" <b>': None, "b": who, "c": None}


async def test_programs_get_json(deepwork, plan):
    for arguments in (
        ("show",), ("show", plan["workflow"]), ("next", plan["workflow"]), ("tasks", plan["workflow"]), ("agents",),
        ("messages", plan["workflow"]), ("messages", "--agent", plan["worker"]), ("graph", plan["workflow"]),
        ("why-blocked", plan["c"]),
    ):  # fmt: skip
        answer = deepwork(*arguments, "--json")
        assert answer.returncode == 0, answer.stderr
        assert isinstance(json.loads(answer.stdout), dict)


async def test_a_graph_is_a_flowchart_in_which_names_are_only_text(deepwork, plan):
    lines = deepwork("graph", plan["workflow"], "--mermaid").stdout.splitlines()
    first = next(task for name, task in plan.items() if "quoted" in name)
    assert lines[0] == "flowchart LR"
    assert f'  {first}["a #quot;quoted#quot; #lt;b#gt;"]:::completed' in lines
    assert f"  {plan['b']} --> {plan['c']}" in lines
    assert "b" in deepwork("graph", plan["workflow"]).stdout


async def test_an_unknown_id_is_an_error_that_people_can_read(deepwork, plan):
    for arguments in (("show", "wf_x"), ("next", "wf_x"), ("why-blocked", "tk_x"), ("export", "wf_x")):
        answer = deepwork(*arguments)
        assert answer.returncode == 1
        assert answer.stderr.startswith("Error: there is no ")
        assert "_x'" in answer.stderr
        assert "{" not in answer.stderr


async def test_what_is_exported_can_be_imported_without_loss(deepwork, plan, agent, tmp_path):
    template = await agent.call("template_create", name="t", from_workflow_id=plan["workflow"])
    await agent.call("template_apply", template_id=template["id"], workflow_name="applied")
    exported = deepwork("export").stdout
    elsewhere = {"DEEPWORK_DATABASE_URL": f"sqlite:///{tmp_path}/other.db"}
    answer = deepwork("import", "-", stdin=exported, env=elsewhere)
    assert answer.returncode == 0, answer.stderr
    assert "2 plans with 6 tasks and 1 templates stored" in answer.stdout
    assert "1 tasks were begun" in answer.stderr
    assert deepwork("export", env=elsewhere).stdout == exported
    content = json.loads(exported)
    assert "agents" not in content
    assert "assigned_agent_id" not in exported
    details = json.loads(deepwork("show", plan["workflow"], "--json", env=elsewhere).stdout)
    assert details["progress"]["blocked_tasks"] == [{"id": plan["c"], "name": "c", "blocked_by": ["b"]}]
    single_export = json.loads(deepwork("export", plan["workflow"]).stdout)
    assert (len(single_export["workflows"]), single_export["templates"]) == (1, [])


async def test_a_task_that_another_only_informs_does_not_wait_for_it(deepwork, plan, team, tmp_path, monkeypatch):
    """A dependency of the type `informs` is not counted, neither at the import nor when its task is completed."""
    content = json.loads(deepwork("export").stdout)
    for edge in content["dependencies"]:
        edge["type"] = "informs" if edge["task_id"] == plan["c"] else edge["type"]
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", f"sqlite:///{tmp_path}/other.db")
    assert deepwork("import", "-", stdin=json.dumps(content)).returncode == 0
    agent = await team.agent()
    worker = await agent.worker()

    async def is_available():
        listed = await agent.call("task_get_available", agent_id=worker, workflow_id=plan["workflow"])
        return plan["c"] in [task["id"] for task in listed["tasks"]]

    assert await is_available()
    await agent.move(plan["b"], "completed")
    assert await is_available()


async def test_messages_of_one_moment_are_shown_in_the_order_of_sending_the_last_first(deepwork, agent):
    """A broadcast is one transaction, so its messages have one time."""
    sender, *_ = [await agent.worker(name) for name in ("ann", "bob", "cy", "dee")]
    sent = await agent.call("message_broadcast", sender_id=sender, message_type="broadcast", body="all")
    messages = json.loads(deepwork("messages", "--agent", sender, "--json").stdout)["messages"]
    assert len({message["created_at"] for message in messages}) == 1
    assert [message["id"] for message in messages] == sent["message_ids"][::-1]


def _turn_back(content):
    """Make the first task of a dependency wait for the second one too."""
    edge = content["dependencies"][0]
    content["dependencies"].append({**edge, "task_id": edge["depends_on_id"], "depends_on_id": edge["task_id"]})


async def test_an_import_is_all_or_nothing(deepwork, plan, tmp_path):
    exported = deepwork("export").stdout
    again = deepwork("import", "-", stdin=exported)
    assert (again.returncode, "there already" in again.stderr) == (1, True)
    elsewhere = {"DEEPWORK_DATABASE_URL": f"sqlite:///{tmp_path}/other.db"}
    for change, words in (
        (lambda content: content["tasks"].pop(), "which is not in the tasks"),
        (lambda content: content["tasks"][0].update(status="nonsense"), "tasks.0.status"),
        (lambda content: content.update(surprise=1), "surprise"),
(_turn_back, "wait for each other"),
    ):  # fmt: skip
        content = json.loads(exported)
        change(content)
        answer = deepwork("import", "-", stdin=json.dumps(content), env=elsewhere)
        assert (answer.returncode, words in answer.stderr) == (1, True), answer.stderr
    assert deepwork("import", "-", stdin="nonsense", env=elsewhere).returncode == 1
    assert deepwork("show", env=elsewhere).stderr == "No plans.\n"
