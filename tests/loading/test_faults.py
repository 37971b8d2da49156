"""What is wrong in the code of a plugin is told as the plugin's: its name, its place, and the line that blocks it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork.errors import PluginLoadError
from deepwork.loading.discovery import Candidate
from deepwork.loading.faults import place_of
from deepwork.project.project import Project
from deepwork.testing import Refused, review, step

MUTE = """
from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec

def nod() -> str:
    return ""

@hookimpl
def deepwork_tool_sets():
    yield ToolSet("mute", [ToolSpec("nod", nod, title="Nod", output="text")], prefix="mute_")
"""
NOTES = """
import click
from deepwork import hookimpl

@hookimpl
def deepwork_commands():
    yield click.Command("notes", callback=lambda: None)
"""


def block(place, name):
    return (
        f"Correct it in {place}, or, to go without it, add {name!r} to `plugins.block` in .deepwork/config.yml (below "
        "the key `plugins` if it is there)."
    )


FAR = (
    "job source 'far' of deepwork-bad-source 0.22 (plugin 'bad_source') cannot be read: "
    "RuntimeError: the database is away (bad_source_plugin/__init__.py, line 11)"
)


@pytest.fixture
def deepwork(project):
    """Run a command in the project."""

    def deepwork(*arguments):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project.root)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)

    return deepwork


@pytest.fixture
def findings(deepwork):
    """Return the findings of doctor: the text and the cure of each, by the check."""

    def findings():
        report = json.loads(deepwork("doctor", "--json").stdout)
        by_check = {}
        for finding in report["findings"]:
            by_check.setdefault(finding["check"], []).append((finding["level"], finding["text"], finding["cure"]))
        return by_check

    return findings


def test_a_tool_of_which_no_schema_can_be_made_stops_the_server_with_its_place(install, serve):
    install("bad_tool")
    ended = serve()
    assert (ended.returncode, ended.stdout) == (1, "")
    place = (
        "tool 'things_take' (bad_tool_plugin/__init__.py, line 11) failed: TypeError: the parameter 'thing' has the "
    )
    place += "type Thing, of which there is no JSON schema; take str, int"
    assert f"Error: deepwork-bad-tool 0.20 (plugin 'bad_tool'): {place}" in ended.stderr
    assert ended.stderr.endswith(f"Hint: {block('bad_tool_plugin', 'deepwork-bad-tool')}\n")


def test_doctor_and_plugins_build_every_tool_and_name_each_that_fails(install, deepwork, findings):
    install("bad_tool")
    errors = [(text, cure) for level, text, cure in findings()["plugins"] if level == "error"]
    assert [text.partition("tool '")[2].partition("'")[0] for text, _ in errors] == ["things_take", "things_spread"]
    assert {cure for _, cure in errors} == {block("bad_tool_plugin", "deepwork-bad-tool")}
    listed = deepwork("plugins")
    assert listed.returncode == 1
    assert "tool 'things_take' (bad_tool_plugin" in listed.stdout


def test_a_check_that_gives_no_finding_or_raises_hides_no_other_and_nothing_that_it_found_before(install, findings):
    install("bad_check")
    facts = findings()
    by = "deepwork-bad-check 0.21 (plugin 'bad_check')"
    assert facts["texts"] == [
        (
            "error",
            f"{by}: check 'texts' gave 'all is well', not a Finding",
            block("bad_check_plugin", "deepwork-bad-check"),
        )
    ]
    assert "not a Finding" in facts["words"][0][1]
    assert facts["fails"][0] == ("warning", "a password stands in a file", None)
    assert facts["fails"][1][1] == (
        f"{by}: check 'fails' failed: KeyError: 'ACME_URL' (bad_check_plugin/__init__.py, line 17)"
    )
    assert facts["prints"] == [("ok", "all is really well", None)]


@pytest.mark.anyio
async def test_a_job_source_that_raises_takes_no_job_of_another_source_with_it(project, install):
    install("bad_source")
    project.write_job("demo")
    async with project.agent() as agent:
        listed = await agent.call("get_workflows")
        assert "demo" in [job["name"] for job in listed["jobs"]]
        [error] = listed["errors"]
        assert error["error"] == f"{FAR}\n{block('bad_source_plugin', 'deepwork-bad-source')}"
        assert (await agent.start("demo"))["step_id"] == "a"
        with pytest.raises(Refused, match="the database is away"):
            await agent.start("a_job_of_the_far_source")


def test_a_source_that_raises_holds_no_folder(project, install):
    install("bad_source")
    [far] = [source for source in Project(project.root).catalogue.sources if source.name == "far"]
    assert far.holds(Path()) is False


def test_people_read_of_a_job_source_that_raises_too(install, deepwork, findings):
    install("bad_source")
    listed = deepwork("jobs", "list")
    assert listed.returncode == 0
    assert FAR in listed.stdout
    assert ("error", FAR, block("bad_source_plugin", "deepwork-bad-source")) in findings()["jobs"]


def test_a_bad_setting_of_one_plugin_hides_nothing_of_another(project, install, findings):
    install("bad_setting", "bad_check")
    by = "deepwork-bad-setting 0.23 (plugin 'bad_setting')"
    facts = findings()
    levels = {text: level for level, text, _ in facts["plugins"]}
    assert levels[f"{by}: plugins.settings.bad_setting.url: Field required"] == "error"
    assert levels[f"{by}: tool set far"] == "info"
    assert facts["prints"] == [("ok", "all is really well", None)]


def test_a_runner_that_cannot_be_made_is_named(install, serve):
    install("bad_parts")
    assert serve().returncode == 0
    ended = serve("--external-runner", "parts")
    assert ended.returncode == 1
    place = "OSError: no such model (bad_parts_plugin/__init__.py, line 8)"
    assert f"`create` of the runner 'parts' failed: {place}" in ended.stderr


@pytest.mark.anyio
async def test_an_agent_reads_that_a_store_is_no_store(project, install):
    install("bad_parts")
    project.write_job("demo")
    async with project.agent(state_store="parts") as agent:
        with pytest.raises(Refused, match="`open` of the store 'parts' failed: TypeError: it gave dict"):
            await agent.start("demo")


def test_tracebacks_are_there_at_level_debug_only(install, serve):
    install("raising")
    assert "Traceback" not in serve().stderr
    logged = serve("--log-level", "debug").stderr
    assert "Traceback" in logged
    assert 'raise RuntimeError("the moon is in the wrong phase")' in logged


def test_whatever_a_plugin_prints_json_stays_json(install, deepwork):
    install("noisy", "bad_check")
    for command in (["plugins", "--json"], ["doctor", "--json"]):
        ended = deepwork(*command)
        json.loads(ended.stdout)
        assert "echo at import" in ended.stderr


def test_json_stays_json_while_a_source_a_store_or_a_runner_prints(project, install, deepwork):
    install("chatty")
    project.write(".deepwork/config.yml", "state: {store: chatty}")
    project.write_job("demo", steps=[step("a", reviews=[review()])])
    project.write("a.md")
    for command, printed in (
        (["jobs", "list", "--json"], "the source loads"),
        (["gate", "list", "--json"], "the source loads"),
        (["sessions", "list", "--json"], "the store finds"),
        (["gate", "try", "demo", "a", "--file", "a.md", "--runner", "chatty", "--json"], "the runner reviews"),
    ):
        ended = deepwork(*command)
        assert json.loads(ended.stdout) is not None
        assert printed in ended.stderr


def test_a_tool_without_docstring_is_a_warning(project, tmp_path, deepwork, monkeypatch):
    """It does not keep a server from starting."""
    (tmp_path / "mute.py").write_text(MUTE)
    monkeypatch.setenv("DEEPWORK_PLUGINS_DIR", str(tmp_path))
    ended = deepwork("plugins")
    assert ended.returncode == 0
    assert "    ! the tool 'nod' has no docstring, so that agents read no description of it\n" in ended.stdout


def test_a_single_record_instead_of_a_list_is_named_with_its_place(tmp_path, deepwork, monkeypatch):
    (tmp_path / "mute.py").write_text(MUTE.replace("yield", "return"))
    monkeypatch.setenv("DEEPWORK_PLUGINS_DIR", str(tmp_path))
    ended = deepwork("plugins")
    assert ended.returncode == 1
    text = "hook deepwork_tool_sets failed: it returned one ToolSet; `yield` it or return a list (mute.py, line 8)"
    assert text in ended.stdout
    assert "Correct it in mute.py, or, to go without it, add 'mute.py' to `plugins.block`" in ended.stderr


def test_a_command_that_two_plugins_offer_is_said_to_be_hidden(tmp_path, deepwork, monkeypatch):
    for name in ("notes_a", "notes_b"):
        (tmp_path / f"{name}.py").write_text(NOTES)
    monkeypatch.setenv("DEEPWORK_PLUGINS_DIR", str(tmp_path))
    ended = deepwork("notes")
    assert ended.returncode == 2
    assert "'notes' is hidden: two plugins offer it." in ended.stderr
    listed = deepwork("plugins")
    assert listed.returncode == 1
    assert "Keep one of them: add 'notes_a.py' or 'notes_b.py' to `plugins.block`" in listed.stderr


def test_a_command_that_hides_behind_one_of_the_core_is_told(install, deepwork):
    install("shadow")
    ended = deepwork("plugins", "--json")
    report = json.loads(ended.stdout)
    [row] = [row for row in report["plugins"] if row["name"] == "shadow"]
    assert row["adds"] == {"command": ["doctor", "heal"]}
    assert "the command 'doctor' of deepwork-shadow 0.25 (plugin 'shadow') is hidden by the core's own" in str(
        report["errors"]
    )
    assert ended.returncode == 1


def test_settings_for_a_plugin_that_is_not_there_are_told(project, install, serve, findings):
    install("shadow")
    project.write(".deepwork/config.yml", "plugins: {settings: {shadwo: {a: b}}}")
    text = "plugins.settings.shadwo: no installed plugin has this name; did you mean 'shadow'?"
    assert f"WARNING deepwork.server: {text}\n" in serve().stderr
    assert text in [warning for _, warning, _ in findings()["configuration"]]


def test_a_function_without_code_of_its_own_has_no_place():
    assert place_of(os.fspath) == ""
    assert place_of(len) == ""


def test_a_plugin_without_a_module_has_a_cause_without_a_place():
    from deepwork.loading.faults import fault

    error = fault(Candidate("acme", "deepwork-acme", "1.0", lambda: None), "its hook", KeyError("x"))
    assert isinstance(error, PluginLoadError)
    assert error.message == "deepwork-acme 1.0 (plugin 'acme'): its hook failed: KeyError: 'x'"
