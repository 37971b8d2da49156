"""`deepwork doctor` finds what would bite, says what cures it, and is green where all is well."""

import json
import os

import pytest


@pytest.fixture
def findings(run):
    """Give the exit code, and what was found, by level."""

    def findings(*arguments):
        done = run("doctor", "--json", *arguments)
        report = json.loads(done.stdout)
        assert report["ok"] is (done.returncode == 0), done.stdout
        found = {}
        for one in report["findings"]:
            found.setdefault(one["level"], []).append(one)
        return done.returncode, found

    return findings


def test_a_fresh_project_has_neither_errors_nor_warnings(run, findings):
    run("init")
    code, found = findings()
    assert code == 0
    assert set(found) <= {"ok", "info"}, found


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("quality_gate: {runner: nope}", "no review runner 'nope'"),
        ("state: {store: nope}", "no state store 'nope'"),
        ("tools: {sets: [nope]}", "no tool set 'nope'"),
        ("plugins: {require: [nope]}", "plugins.require names 'nope'"),
        ("stat: {}", "unknown key 'stat'; did you mean 'state'?"),
    ],
)
def test_what_would_stop_a_server_is_an_error_said_once(project, findings, config, words):
    project.write(".deepwork/config.yml", config)
    code, found = findings()
    assert code == 1
    assert [words in one["text"] for one in found["error"]].count(True) == 1


def test_two_tool_sets_of_one_name_are_an_error(install, findings):
    install("good", "clash_set")
    code, found = findings()
    assert code == 1
    assert any("offered twice" in one["text"] for one in found["error"])


def test_a_broken_job_is_an_error_with_its_line_and_a_doubtful_one_a_warning(project, findings):
    project.write(".deepwork/jobs/broken/job.yml", "name: broken\n")
    (project.write_job("doubtful") / "steps" / "a.md").unlink()
    code, found = findings()
    assert code == 1
    assert any("job.yml:1: 'version' is missing" in one["text"] for one in found["error"])
    assert any("'steps/a.md' does not exist" in one["text"] for one in found["warning"])


def test_a_plugin_that_cannot_be_imported_is_a_warning_with_its_cause(install, findings):
    install("importerror")
    code, found = findings()
    assert code == 0
    assert any("a_module_that_nobody_has" in one["text"] for one in found["warning"])


def test_an_untrusted_setting_is_a_warning_cured_by_trust(project, findings):
    project.write(".deepwork/config.yml", "allowed_output_roots: [/outside]\n")
    _, found = findings()
    assert [one["cure"] for one in found["warning"]] == ["deepwork trust"]


def test_damaged_sessions_and_old_schemas_are_warnings(project, run, findings):
    run("init")
    project.write(".deepwork/tmp/session_abc.json", "{")
    run("sessions", "show", "abc")
    project.write(".deepwork/schema/job.schema.json", "{}")
    _, found = findings()
    texts = " ".join(one["text"] for one in found["warning"])
    assert "session_abc.json" in texts
    assert ".deepwork/schema/job.schema.json is of another release" in texts


def test_clients_entries_are_seen_and_their_programs_looked_for(project, findings):
    entry = {"command": "no-such-deepwork", "args": ["serve"]}
    project.write(".mcp.json", json.dumps({"mcpServers": {"deepwork": entry}}))
    project.write(".cursor/mcp.json", "{ not json")
    _, found = findings()
    assert any("no such program: no-such-deepwork" in one["text"] for one in found["warning"])


def test_a_parent_that_was_probably_meant_is_named(project, run):
    run("init")
    below = project.root / "src"
    below.mkdir()
    done = run("doctor", cwd=below, PYTHONPATH=os.environ.get("PYTHONPATH", ""))
    assert f"{project.root} has" in done.stdout
