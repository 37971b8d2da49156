"""The command as a whole: what it loads, how it ends, what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork import __version__


@pytest.fixture
def loaded(run):
    """Run a command, and give the outermost packages that it imports."""

    def loaded(*arguments):
        ended = run(*arguments, options=["-X", "importtime"])
        assert ended.returncode == 0
        return {line.rpartition("|")[2].strip().partition(".")[0] for line in ended.stderr.splitlines()}

    return loaded


def test_version_prints_the_version_and_loads_neither_plugins_nor_anything_heavy(run, loaded, install):
    install("noisy")
    assert run("--version").stdout == f"deepwork, version {__version__}\n"
    assert not loaded("--version") & {
        "noisy_plugin", "fastmcp", "mcp", "pydantic", "pluggy", "yaml", "importlib_metadata",
    }  # fmt: skip


@pytest.mark.parametrize("command", ["serve", "init", "jobs", "completion"])
def test_the_help_of_a_command_of_the_core_loads_neither_plugins_nor_fastmcp(loaded, install, command):
    install("noisy")
    assert not loaded(command, "--help") & {"noisy_plugin", "fastmcp", "mcp"}


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands_for_a_newcomer_and_loads_no_fastmcp(run, loaded, flag):
    ended = run(flag)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Usage: deepwork [OPTIONS] COMMAND [ARGS]...")
    listed = re.findall(r"^  (\w+)  ", ended.stdout, re.MULTILINE)
    assert listed[:4] == ["serve", "init", "connect", "status"]
    assert "deepwork init" in ended.stdout
    assert not loaded(flag) & {"fastmcp", "mcp"}


def test_help_lists_the_commands_of_plugins_and_survives_broken_ones(run, install):
    install("commands", "importerror")
    ended = run("--help")
    assert ended.returncode == 0
    assert re.search(r"^  crash  +Raise an unexpected error\.$", ended.stdout, re.MULTILINE)


def test_without_arguments_it_says_how_it_is_used(run):
    ended = run()
    assert ended.returncode == 2
    assert "Usage: deepwork" in ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serv"], "No such command 'serv'"),
        (["--nonsense"], "No such option"),
        (["init", "--nonsense"], "No such option"),
        (["init", "extra"], "unexpected extra argument"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(run, arguments, message):
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_expected_error_exits_with_1_and_is_message_and_hint(run, install):
    install("commands")
    ended = run("refuse")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "Error: not today\nHint: Come back tomorrow.\n"


def test_a_missing_project_is_an_expected_error_of_every_command(run):
    for command in (["serve"], ["init"], ["jobs", "list"]):
        ended = run(*command, "--path", "nowhere")
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr == "Error: project root 'nowhere' is not a folder\nHint: Give an existing one: --path.\n"


def test_a_bug_exits_with_3_and_names_the_file_that_has_the_rest(run, install):
    install("commands")
    ended = run("crash")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "Traceback" not in ended.stderr
    named = Path(re.fullmatch(r"Error: this is a bug of deepwork\. Details: (.+)\n", ended.stderr)[1])
    assert named.parent == Path(os.environ["XDG_STATE_HOME"]) / "deepwork"
    text = named.read_text()
    assert text.startswith(f"deepwork {__version__}, Python {sys.version}\n")
    assert text.endswith("ZeroDivisionError: nobody expects this\n")


def test_a_bug_whose_details_cannot_be_kept_is_told_in_full(run, install, tmp_path):
    install("commands")
    (tmp_path / "file").touch()
    ended = run("crash", XDG_STATE_HOME=str(tmp_path / "file"))
    assert ended.returncode == 3
    assert "ZeroDivisionError: nobody expects this" in ended.stderr


def test_an_interrupted_command_exits_with_130(project, install):
    install("commands")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Who runs the tests in the background of a shell has SIGINT ignored, and so have the children.
    pipes["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([sys.executable, "-m", "deepwork", "wait"], text=True, cwd=project.root, **pipes) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
        assert process.stderr.read().strip() == "Interrupted."


@pytest.mark.parametrize("error", ["class", "schema"])
def test_an_interruption_that_others_have_wrapped_is_no_bug(run, install, error):
    install("commands")
    ended = run("interrupted", error)
    assert (ended.returncode, ended.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize("arguments", [["jobs", "list"], ["jobs", "list", "--json"], ["--help"], ["init"]])
def test_a_reader_that_has_gone_is_no_reason_to_complain(project, arguments):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "deepwork", *arguments]
    try:
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=project.root)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_stdout_carries_the_result_alone_whatever_a_plugin_prints(run, install):
    install("printing")
    listing = run("jobs", "list", "--json")
    assert (listing.returncode, listing.stderr) == (0, "print at import\nprint at hook\n")
    assert [job["name"] for job in json.loads(listing.stdout)["jobs"]] == ["deepwork_jobs", "project_tour"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(run, shell):
    ended = run("completion", shell)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "_DEEPWORK_COMPLETE" in ended.stdout


def test_the_completion_script_of_bash_is_bash(run):
    checked = subprocess.run(["bash", "-n"], input=run("completion", "bash").stdout, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_shell_gets_commands_and_options(run):
    environment = {"_DEEPWORK_COMPLETE": "bash_complete", "COMP_WORDS": "deepwork se", "COMP_CWORD": "1"}
    assert "plain,serve" in run(**environment).stdout.splitlines()
    environment = {"_DEEPWORK_COMPLETE": "bash_complete", "COMP_WORDS": "deepwork serve --tran", "COMP_CWORD": "2"}
    assert run(**environment).stdout.splitlines() == ["plain,--transport"]


def test_the_installed_command_is_the_same_as_the_module(run):
    command = Path(sys.executable).parent / "deepwork"
    if not command.exists():
        pytest.skip("the package is not installed beside this Python")
    result = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == run("--version").stdout
