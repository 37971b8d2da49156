"""Every kind of bad plugin: the exact words, and that the line which they advise cures it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from deepwork import __version__
from deepwork.errors import PluginError

WHERE = "`plugins.block` in .deepwork/config.yml (below the key `plugins` if it is there)."
ADD = f"Keep one of them: add %s to {WHERE}"


def block(place, name):
    return f"Correct it in {place}, or, to go without it, add {name!r} to {WHERE}"


REFUSED = {
    "twins": (
        ["twin_a", "twin_b"],
        "plugin name 'twin' is used twice:\n"
        "  - deepwork-twin-a 1.0 (plugin 'twin')\n"
        "  - deepwork-twin-b 2.0 (plugin 'twin')",
        ADD % "'deepwork-twin-a' or 'deepwork-twin-b'",
    ),
    "two tools": (
        ["clash_tool"],
        "tool name 'start_workflow' is offered twice:\n"
        f"  - deepwork {__version__} (feature 'workflow_tools')\n"
        "  - deepwork-clash-tool 0.6 (plugin 'clash_tool')",
        "Give one set a prefix in .deepwork/config.yml (below the key `tools` if it is there) ->  "
        "tools: {prefix: {rival: rival_}}",
    ),
    "two stores": (
        ["clash_store"],
        "state store 'json' is offered twice:\n"
        f"  - deepwork {__version__} (feature 'json_store')\n"
        "  - deepwork-clash-store 0.7 (plugin 'clash_store')",
        ADD % "'json_store' or 'deepwork-clash-store'",
    ),
    "two sources": (
        ["clash_source"],
        "job source 'project' is offered twice:\n"
        f"  - deepwork {__version__} (feature 'local_jobs')\n"
        "  - deepwork-clash-source 0.8 (plugin 'clash_source')",
        ADD % "'local_jobs' or 'deepwork-clash-source'",
    ),
    "two runners": (
        ["clash_runner"],
        "review runner 'self' is offered twice:\n"
        f"  - deepwork {__version__} (feature 'reviewers')\n"
        "  - deepwork-clash-runner 0.9 (plugin 'clash_runner')",
        ADD % "'reviewers' or 'deepwork-clash-runner'",
    ),
    "two sets": (
        ["good", "clash_set"],
        "tool set 'acme' is offered twice:\n"
        "  - acme-tracker 2.1 (plugin 'acme')\n"
        "  - deepwork-clash-set 0.15 (plugin 'clash_set')",
        ADD % "'acme-tracker' or 'deepwork-clash-set'",
    ),
    "one tool twice": (
        ["double_tool"],
        "tool name 'echo' is offered twice:\n"
        "  - deepwork-double-tool 0.16 (plugin 'double_tool')\n"
        "  - deepwork-double-tool 0.16 (plugin 'double_tool')",
        "Rename one of the two tools in this plugin.",
    ),
    "nonsense": (
        ["nonsense"],
        "deepwork-nonsense 0.10 (plugin 'nonsense'): hook deepwork_state_stores gave int, not StateStoreSpec",
        block("nonsense_plugin", "deepwork-nonsense"),
    ),
    "async hook": (
        ["asynchook"],
        "deepwork-async-hook 0.11 (plugin 'asynchook'): hook deepwork_tool_sets failed: "
        "the hook is async; hooks declare, and the objects they give may be async (async_hook/__init__.py, line 6)",
        block("async_hook", "deepwork-async-hook"),
    ),
    "raising hook": (
        ["raising"],
        "deepwork-raising 0.12 (plugin 'raising'): hook deepwork_job_sources failed: "
        "RuntimeError: the moon is in the wrong phase (raising_hook/__init__.py, line 8)",
        block("raising_hook", "deepwork-raising"),
    ),
    "unknown hook": (
        ["unknown_hook"],
        "deepwork-unknown-hook 0.13 (plugin 'unknown_hook'): unknown hook 'deepwork_horoscopes'; "
        "did you mean 'deepwork_tool_sets'?",
        block("unknown_hook", "deepwork-unknown-hook"),
    ),
    "wrong argument": (
        ["wrong_argument"],
        "deepwork-wrong-argument 0.14 (plugin 'wrong_argument'): "
        "hook 'deepwork_tool_sets' takes 'server', which is not an argument of it; valid: context, engine",
        block("wrong_argument", "deepwork-wrong-argument"),
    ),
}


@pytest.mark.parametrize(("dists", "message", "hint"), REFUSED.values(), ids=REFUSED)
def test_a_bad_plugin_stops_the_server_with_its_name_and_the_cure(project, install, dists, message, hint):
    install(*dists)
    with pytest.raises(PluginError) as error:
        project.server()
    assert error.value.message == message
    assert error.value.hint == hint


@pytest.mark.parametrize("kind", [kind for kind in REFUSED if kind != "one tool twice"])
def test_the_advised_line_cures_the_plugin(project, install, kind):
    dists, _, hint = REFUSED[kind]
    install(*dists)
    project.write(".deepwork/config.yml", _advised(hint))
    assert project.server().name == "deepwork"


def _advised(hint):
    """The configuration that a hint advises; where there is a choice, the last that it names."""
    line = hint.partition("->")[2].strip()
    names = re.findall(r"'([^']+)'", hint)
    return line or f"plugins: {{block: [{names[-1]}]}}"


@pytest.mark.parametrize("kind", ["twins", "two tools", "raising hook"])
def test_serve_says_it_on_stderr_and_exits_with_1(install, serve, kind):
    dists, message, hint = REFUSED[kind]
    install(*dists)
    ended = serve()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.endswith(f"Error: {message}\nHint: {hint}\n")
    assert "Traceback" not in ended.stderr


def test_serve_starts_once_the_advised_line_is_in_the_configuration(project, install, serve):
    dists, _, hint = REFUSED["two stores"]
    install(*dists)
    assert serve().returncode == 1
    project.write(".deepwork/config.yml", _advised(hint))
    ended = serve()
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("dist", "line"),
    [
        (
            "importerror",
            "deepwork-broken-import 0.3 (plugin 'broken') could not be loaded and is left out: "
            "ModuleNotFoundError: No module named 'a_module_that_nobody_has' (broken_import/__init__.py, line 3)",
        ),
        (
            "exits",
            "deepwork-exits 0.4 (plugin 'exits') could not be loaded and is left out: "
            "SystemExit: no licence found (exits_at_import/__init__.py, line 5)",
        ),
    ],
)
def test_serve_runs_without_a_plugin_that_cannot_be_imported_and_says_why(install, serve, dist, line):
    install(dist)
    ended = serve()
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr == f"WARNING deepwork.plugins: {line}\n"


@pytest.mark.anyio
async def test_a_prefix_cures_a_clash_of_tools_and_both_can_be_called(project, install):
    install("clash_tool")
    project.write(".deepwork/config.yml", REFUSED["two tools"][2].partition("->")[2])
    async with project.agent() as agent:
        answer = await agent.client.call_tool("rival_start_workflow")
        assert answer.content[0].text == "started by another plugin"
        assert (await agent.start("project_tour", "write_tour"))["step_id"] == "survey"


def test_a_clash_is_refused_whether_the_name_is_selected_or_not(project, install):
    install("clash_store")
    with pytest.raises(PluginError, match="state store 'json' is offered twice"):
        project.server(state_store="memory")


def test_a_set_that_is_not_served_clashes_with_nothing(project, install):
    install("clash_tool")
    assert project.server(tools=["core"]).name == "deepwork"
    assert project.server(tools=["rival"]).name == "deepwork"


@pytest.mark.parametrize("name", ["raising", "deepwork-raising"])
def test_an_option_cures_it_for_one_run(install, serve, name):
    install("raising")
    ended = serve("--no-plugin", name)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_environment_variable_cures_it_for_one_shell(install, serve, monkeypatch):
    install("raising", "clash_store")
    already = os.environ["DEEPWORK_NO_PLUGINS"]
    monkeypatch.setenv("DEEPWORK_NO_PLUGINS", f"{already}, raising, deepwork-clash-store")
    ended = serve()
    assert (ended.returncode, ended.stderr) == (0, "")


def test_strictly_a_plugin_that_cannot_be_imported_stops_the_server(install, serve, monkeypatch):
    install("importerror")
    monkeypatch.setenv("DEEPWORK_STRICT_PLUGINS", "1")
    ended = serve()
    assert ended.returncode == 1
    assert "Error: deepwork-broken-import 0.3 (plugin 'broken') could not be loaded" in ended.stderr


@pytest.mark.parametrize("arguments", [["serve"], ["plugins"], ["jobs", "list"]])
def test_a_plugin_that_leaves_a_thread_behind_keeps_no_command_from_ending(project, install, arguments):
    install("threads")
    command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project.root)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0
    assert "Ended without waiting for: left behind" in ended.stderr
