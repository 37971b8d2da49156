"""Files of plans that `deepwork plan export` has not written: nothing of them is stored, and none is a bug."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

WORKFLOW = {
    "id": "wf_1",
    "created_at": 1,
    "updated_at": 1,
    "repository_id": None,
    "name": "plan",
    "source_type": "prompt",
    "source_ref": None,
    "source_content": "c",
    "status": "ready",
    "initial_plan": None,
    "plan_summary": None,
    "max_parallel_tasks": 1,
    "auto_create_workspaces": False,
    "config": None,
}
TASK = {
    "id": "tk_1",
    "created_at": 1,
    "updated_at": 1,
    "workflow_id": "wf_1",
    "name": "task",
    "description": None,
    "status": "pending",
    "sequence": 1,
    "parallel_group": None,
    "plan": None,
    "plan_summary": None,
    "context": None,
    "outcome": None,
    "outcome_detail": None,
    "error": None,
    "required_capabilities": None,
    "workspace_id": None,
}
ALL_NESTED = '{"workflows": ' + "[" * 100_000 + "]" * 100_000 + "}"


def plans(workflows=({},), tasks=(), waits=()):
    edges = [{"task_id": task, "depends_on_id": needed, "type": "blocks"} for task, needed in waits]
    return json.dumps(
        {
            "workflows": [{**WORKFLOW, **changes} for changes in workflows],
            "tasks": [{**TASK, **changes} for changes in tasks],
            "dependencies": edges,
        }
    )


FILES = {
    "no text": b"\xff\xfe",
    "nothing": b"",
    "a list": b"[]",
    "everything nested": ALL_NESTED,
    "half a character": plans([{"name": "a\ud800"}]),
    "a NUL": plans([{"name": "a\0b"}]),
    "a time that no date has": plans([{"created_at": 10**30}]),
    "a time before all": plans([{"updated_at": -1}]),
    "a number that no database holds": plans(tasks=[{"sequence": 2**70}]),
    "a share of nothing": plans([{"max_parallel_tasks": -5}]),
    "an id twice": plans([{}, {}]),
    "a task twice": plans(tasks=[{}, {"id": "tk_2"}]),
    "a dependency twice": plans(tasks=[{}, {"id": "tk_2", "name": "b"}], waits=[("tk_1", "tk_2")] * 2),
    "a circle": plans(tasks=[{}, {"id": "tk_2", "name": "b"}], waits=[("tk_1", "tk_2"), ("tk_2", "tk_1")]),
    "a path for an id": plans(tasks=[{"id": "../../../elsewhere"}]),
    "an escape for an id": plans([{"id": "\x1b[2J"}]),
    "a key that there is not": plans([{"principal": "root"}]),
}


@pytest.fixture
def run(project_on_database):
    """Run a command as a terminal does."""

    def run(*arguments):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project_on_database.root)]
        result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=240)
        assert "this is a bug" not in result.stderr, result.stderr
        return result

    return run


@pytest.fixture
def import_(run, tmp_path):
    """Let a file be imported."""

    def import_(content):
        file = tmp_path / "plans.json"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return run("plan", "import", str(file))

    return import_


@pytest.mark.parametrize("names", [[*FILES][::8], pytest.param([*FILES], marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_file_that_is_no_plan_is_refused_and_nothing_of_it_is_stored(run, import_, names):
    for name in names:
        result = import_(FILES[name])
        assert result.returncode == 1, name
        assert "\x1b" not in result.stderr, name
    assert json.loads(run("plan", "export").stdout)["workflows"] == []


def test_a_file_is_held_to_the_limits_of_the_tools(run, import_):
    """What no tool could have stored is not stored by an import either."""
    names = [f"tk_{number}" for number in range(320)]
    many = [{"id": name, "name": name} for name in names]
    for content, message in (
        (plans(tasks=[{"outcome": "x" * (2**20 + 2000)}]), "tk_1: outcome may have 1,048,576 bytes"),
        (plans([{"initial_plan": {"a": "x" * (2**23 + 2000)}}]), "wf_1: initial_plan may have 8,388,608 bytes"),
        (plans(tasks=[task | {"description": "x" * 2**19} for task in many[:17]]), "the plan may have 8,388,608 bytes"),
        (plans(tasks=many, waits=[(a, b) for a in names for b in names if a > b]), "50,000 dependencies"),
    ):
        result = import_(content)
        assert (result.returncode, message in result.stderr) == (1, True), result.stderr
    assert json.loads(run("plan", "export").stdout)["workflows"] == []


def test_names_of_a_file_steer_no_terminal(run, import_):
    name = "\x1b[2J\u202eevil\nsecond"
    assert import_(plans([{"name": name}], [{"name": name}])).returncode == 0
    for command in (["show"], ["show", "wf_1"], ["tasks", "wf_1"], ["next", "wf_1"], ["graph", "wf_1"]):
        result = run("plan", *command)
        assert result.returncode == 0, result.stderr
        assert not {"\x1b", "\u202e"} & set(result.stdout), command


def test_a_chain_of_thousands_is_shown_as_far_as_people_read(run, import_):
    number = 300
    tasks = [{"id": f"tk_{n}", "name": f"t{n}"} for n in range(number)]
    waits = [(f"tk_{n}", f"tk_{n + 1}") for n in range(number - 1)]
    assert import_(plans(tasks=tasks, waits=waits)).returncode == 0
    result = run("plan", "why-blocked", "tk_0")
    assert result.returncode == 0, result.stderr
    assert "t100" in result.stdout
    assert "…" in result.stdout
    assert run("plan", "why-blocked", "tk_0", "--json").returncode == 0
