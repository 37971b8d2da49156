"""`deepwork plugins` shows the installed plugins, what each adds, and its errors."""

import json

import pytest

from deepwork.loading.discovery import installed

BLOCKED = {plugin.name for plugin in installed() if not plugin.builtin}  # what is installed beside the core


@pytest.fixture
def listed(run):
    """Return the rows by name, and the errors."""

    def listed(*arguments):
        result = run("plugins", "--json", *arguments)
        report = json.loads(result.stdout)
        broken = report["errors"] or any(row["status"] == "failed" for row in report["plugins"])
        assert result.returncode == bool(broken), result.stderr
        return {row["name"]: row for row in report["plugins"] if row["name"] not in BLOCKED}, report["errors"]

    return listed


def test_a_plugin_is_shown_with_its_distribution_and_what_it_adds(install, listed):
    install("good")
    rows, errors = listed()
    assert errors == []
    assert list(rows) == ["acme"]
    acme = rows["acme"]
    assert (acme["distribution"], acme["version"], acme["status"]) == ("acme-tracker", "2.1", "active")
    assert set(acme["adds"]) >= {"job source", "state store", "review runner", "tool"}
    assert acme["adds"]["tool set"] == ["acme"]


def test_tools_are_shown_under_the_names_that_agents_see(project, install, listed):
    install("good")
    assert "acme_greet" in listed()[0]["acme"]["adds"]["tool"]
    project.write(".deepwork/config.yml", "tools: {prefix: {acme: a_}}")
    assert "a_greet" in listed()[0]["acme"]["adds"]["tool"]
    project.write(".deepwork/config.yml", "tools: {sets: [acme]}")
    assert "greet" in listed()[0]["acme"]["adds"]["tool"]


def test_the_cores_own_are_shown_on_demand_and_their_tools_cost_less_than_700_tokens(listed):
    assert listed()[0] == {}
    rows, _ = listed("--all", "--cost")
    assert 400 < rows["workflow_tools"]["tokens"] <= 700
    assert rows["json_store"]["adds"] == {"state store": ["json"], "check": ["sessions"]}


def test_each_tool_set_and_subset_is_shown_with_its_cost(install, listed, run):
    install("good")
    rows, _ = listed("--cost")
    costs = rows["acme"]["tool_sets"]
    assert {name: cost["tools"] for name, cost in costs.items()} == {"acme": 9, "acme:reader": 2, "acme:greeter": 1}
    assert rows["acme"]["tokens"] == costs["acme"]["tokens"] > costs["acme:reader"]["tokens"] > 0
    assert "--tools acme:reader: 2 tools, about " in run("plugins", "--cost").stdout


@pytest.mark.parametrize("dist", ["importerror", "exits", "raising", "asynchook", "nonsense", "unknown_hook", "twin_a"])
def test_it_runs_whatever_a_plugin_does(install, run, dist):
    install(dist, *(["twin_b"] if dist == "twin_a" else []))
    result = run("plugins")
    assert result.returncode == 1
    assert "Traceback" not in result.stdout + result.stderr


def test_the_cause_of_a_failure_stands_with_the_plugin(install, listed):
    install("importerror")
    rows, _ = listed()
    assert rows["broken"]["status"] == "failed"
    assert "a_module_that_nobody_has" in rows["broken"]["cause"]


def test_a_clash_that_would_stop_a_server_is_shown(install, listed):
    install("clash_tool")
    _, errors = listed()
    assert any("'start_workflow' is offered twice" in error for error in errors)


def test_a_plugin_is_blocked_by_the_environment(install, listed, monkeypatch):
    install("good")
    monkeypatch.setenv("DEEPWORK_NO_PLUGINS", "acme-tracker")
    assert listed()[0]["acme"]["status"] == "blocked"
