"""`deepwork doctor` finds what would bite, says what cures it, and is green where all is well."""

import json
import os
import re

import pytest

from deepwork.paths.user_folders import user_config_file


@pytest.fixture
def findings(run):
    """Return the exit code, and the findings by level."""

    def findings(*arguments):
        result = run("doctor", "--json", *arguments)
        report = json.loads(result.stdout)
        assert report["ok"] is (result.returncode == 0), result.stdout
        by_level = {}
        for finding in report["findings"]:
            by_level.setdefault(finding["level"], []).append(finding)
        return result.returncode, by_level

    return findings


def test_a_fresh_project_has_neither_errors_nor_warnings(run, findings):
    run("init")
    code, by_level = findings()
    assert code == 0
    assert set(by_level) <= {"ok", "info"}, by_level


def test_the_last_line_counts_what_is_wrong(run, project):
    project.write(".deepwork/config.yml", "state: {store: none}\nunknown: {}\n")
    printed = run("doctor").stdout.splitlines()
    errors, warnings = (sum(line.startswith(f"  {mark} ") for line in printed) for mark in "✗!")
    assert (errors, warnings) == (1, 0)
    assert printed[-2:] == ["", "1 error, no warnings"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("", r"agents get every installed set, about \d+ tokens"),
        ("tools: {sets: [core]}", r"agents get core, about \d+ tokens"),
    ],
)
def test_it_says_which_tool_sets_agents_get_and_what_they_cost(project, findings, config, text):
    project.write(".deepwork/config.yml", config)
    _, by_level = findings()
    assert any(re.fullmatch(text, finding["text"]) for finding in by_level["ok"] + by_level["info"])


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
    code, by_level = findings()
    assert code == 1
    assert [words in finding["text"] for finding in by_level["error"]].count(True) == 1


@pytest.mark.parametrize(
    ("config", "level", "text", "cure"),
    [
        ("", None, "", ""),
        (
            "quality_gate: {strict: true}",
            "error",
            "the quality gate is strict, and reviews go to 'self', which hands them back to the agent and gives no "
            "verdicts; no workflow can be started",
            "Choose an external reviewer: --external-runner, or quality_gate.runner and quality_gate.runners.",
        ),
        (
            "quality_gate: {strict: true, enabled: false}",
            "error",
            "the quality gate is strict, and it is switched off",
            "Serve without that, and with an external reviewer.",
        ),
        (
            "quality_gate: {enabled: false}",
            "info",
            "it is off: steps are completed without their reviews",
            "set quality_gate.enabled: true",
        ),
    ],
    ids=["as it comes", "strict without a reviewer", "strict and off", "off"],
)
def test_a_quality_gate_is_told_of_as_it_is_configured(run, config, level, text, cure):
    run("init")
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(config)
    report = run("doctor")
    assert report.returncode == int(level == "error")
    assert "quality gate" not in report.stderr
    assert run("plugins", "--cost").stderr == ""
    findings = [
        item for item in json.loads(run("doctor", "--json").stdout)["findings"] if item["check"] == "quality gate"
    ]
    assert [item["level"] for item in findings] == ([level] if level else [])
    assert [item for item in findings if item["text"].startswith(text) and item["cure"] == cure] == findings


def test_a_project_that_leaves_out_what_tries_its_gates_is_warned_of(run, project, findings):
    """Its user has not switched that off: a repository may have brought the line."""
    gate = "quality_gate: {runners: [{runner: [ok]}], commands: {ok: {run: ['true'], verdict: exit_code}}}\n"
    project.write(".deepwork/config.yml", gate + "plugins: {block: [proofs]}\n")
    run("trust", "--yes")
    [finding] = [found for found in findings()[1]["warning"] if found["check"] == "quality gate"]
    assert "quality_gate.prove is warn, and no plugin tries gates on broken work; left out: " in finding["text"]
    assert "'proofs'" in finding["text"]
    assert "plugins.block" in finding["cure"]
    project.write(".deepwork/config.yml", gate)
    assert not any(found["check"] == "quality gate" for found in findings()[1].get("warning", []))


def test_a_setting_of_a_plugin_that_waits_for_trust_is_told_at_the_first_run(project, install, findings):
    """What waits is known only once every plugin has been asked for what it offers."""
    install("trusting")
    project.write(".deepwork/config.yml", "plugins: {settings: {trusting: {url: 'http://far'}}}")
    text = "setting plugins.settings.trusting.url has no effect until you approve it"
    assert text in [finding["text"] for finding in findings()[1]["warning"]]
    project.trust()
    assert text not in [finding["text"] for finding in findings()[1].get("warning", [])]


def test_two_tool_sets_of_one_name_are_an_error(install, findings):
    install("good", "clash_set")
    code, by_level = findings()
    assert code == 1
    assert any("offered twice" in finding["text"] for finding in by_level["error"])


def test_a_broken_job_is_an_error_with_its_line_and_a_doubtful_one_a_warning(project, findings):
    project.write(".deepwork/jobs/broken/job.yml", "name: broken\n")
    (project.write_job("failing") / "steps" / "a.md").unlink()
    project.write_job("doubtful", workflows={"main": ["a"]})
    code, by_level = findings()
    assert code == 1
    assert any("job.yml:1: 'version' is missing" in finding["text"] for finding in by_level["error"])
    assert any("'steps/a.md' does not exist" in finding["text"] for finding in by_level["error"])
    assert any("step 'b' is in no workflow" in finding["text"] for finding in by_level["warning"])


def test_a_plugin_that_cannot_be_imported_is_a_warning_with_its_cause(install, findings):
    install("importerror")
    code, by_level = findings()
    assert code == 0
    assert any("a_module_that_nobody_has" in finding["text"] for finding in by_level["warning"])


def test_what_tools_cost_is_information_and_a_warning_only_above_the_projects_own_budget(project, install, findings):
    install("good")
    for config, warnings in (
        ("tools: {sets: [core]}", 0),
        ("tools: {budget: 5}", 0),
        ("tools: {sets: [core], budget: 5000}", 0),
        ("tools: {sets: ['acme:reader', core], budget: 5}", 1),
    ):
        project.write(".deepwork/config.yml", config)
        code, by_level = findings()
        assert code == 0
        assert any("--tools acme:reader: 2 tools, about" in finding["text"] for finding in by_level["info"])
        texts = [finding["text"] for finding in by_level.get("warning", []) if "tools.budget" in finding["text"]]
        assert len(texts) == warnings, config


def test_an_untrusted_setting_is_a_warning_cured_by_trust(project, findings):
    project.write(".deepwork/config.yml", "allowed_output_roots: [/outside]\n")
    _, by_level = findings()
    assert [finding["cure"] for finding in by_level["warning"]] == ["deepwork trust"]


def test_damaged_sessions_and_old_schemas_are_warnings(project, run, findings):
    run("init")
    project.write(".deepwork/tmp/session_abc.json", "{")
    run("sessions", "show", "abc")
    project.write(".deepwork/schema/job.schema.json", "{}")
    _, by_level = findings()
    texts = " ".join(finding["text"] for finding in by_level["warning"])
    assert "session_abc.json" in texts
    assert ".deepwork/schema/job.schema.json is from another release" in texts


def test_clients_entries_are_seen_and_their_programs_looked_for(project, findings):
    entry = {"command": "no-such-deepwork", "args": ["serve"]}
    project.write(".mcp.json", json.dumps({"mcpServers": {"deepwork": entry}}))
    project.write(".cursor/mcp.json", "{ not json")
    _, by_level = findings()
    assert any("no such program: no-such-deepwork" in finding["text"] for finding in by_level["warning"])


def test_below_a_project_it_looks_at_that_and_of_a_folder_that_is_named_it_names_the_parent(project, run):
    run("init")
    below = project.root / "src"
    below.mkdir()
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    assert f"root {project.root} (from the folders above" in run("doctor", cwd=below, **environment).stdout
    assert f"{project.root} has" in run("doctor", "--path", below, **environment).stdout


def test_the_tools_of_a_plugin_are_counted_and_not_listed(install, findings):
    install("good")
    [own] = [finding["text"] for finding in findings()[1]["ok"] if "'acme'" in finding["text"]]
    assert "tool set acme" in own
    assert ", 9 tools" in own
    assert "tool greet" not in own
