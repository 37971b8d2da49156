"""What helps a person who is in the wrong folder, mistypes a command, or starts the server by hand."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from deepwork.commands.options import json_option, nearest_project, path_option


@pytest.fixture
def below(project):
    """A folder two levels below the project."""
    (project.root / ".deepwork").mkdir(exist_ok=True)
    folder = project.root / "src" / "pages"
    folder.mkdir(parents=True)
    return folder


def test_below_a_project_a_command_takes_that_project_and_says_so(project, below, run):
    project.write_job("nearby")
    ended = run("jobs", "list", cwd=below)
    assert "nearby  (project)" in ended.stdout
    assert ended.stderr == f"In the project {project.root}.\n"


def test_a_group_and_its_command_say_once_in_which_project_they_are(project, below, monkeypatch):
    @click.group()
    @path_option
    def outer(root):
        pass

    @outer.command()
    @path_option
    def inner(root):
        click.echo(root)

    monkeypatch.chdir(below)
    ended = CliRunner().invoke(outer, ["inner"])
    assert (ended.stdout, ended.stderr) == (f"{project.root}\n", f"In the project {project.root}.\n")


def test_what_a_group_is_told_counts_for_its_command(project, tmp_path, monkeypatch):
    @click.group()
    @path_option
    @json_option
    def outer(root, as_json):
        pass

    @outer.command()
    @path_option
    @json_option
    def inner(root, as_json):
        click.echo(f"{root} {as_json}")

    monkeypatch.chdir(project.root)
    for options in ([], ["--json"]):
        options += ["--path", str(tmp_path)]
        for arguments in ([*options, "inner"], ["inner", *options]):
            assert CliRunner().invoke(outer, arguments).stdout == f"{tmp_path} {'--json' in options}\n"


def test_a_path_that_is_given_is_taken_as_it_is(project, below, run):
    project.write_job("nearby")
    for options, variables in ((["--path", "."], {}), ([], {"DEEPWORK_PROJECT": str(below)})):
        ended = run("jobs", "list", *options, cwd=below, **variables)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "nearby" not in ended.stdout


@pytest.mark.parametrize("command", [["jobs", "get-stack"], ["init"]])
def test_commands_that_programs_run_stay_in_their_folder(command, project, below, run):
    ended = run(*command, cwd=below)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_home_folder_and_what_is_above_it_are_no_projects(project, below, monkeypatch):
    for home, nearest in ((project.root, None), (below.parent, None), (project.root.parent, project.root)):
        monkeypatch.setenv("HOME", str(home))
        assert nearest_project(below) == nearest


def test_a_folder_of_somebody_else_or_behind_a_link_is_no_project(project, below, monkeypatch):
    assert nearest_project(below) == project.root
    (project.root / ".deepwork").rename(project.root / "elsewhere")
    (project.root / ".deepwork").symlink_to("elsewhere")
    assert nearest_project(below) is None
    (project.root / ".deepwork").unlink()
    (project.root / "elsewhere").rename(project.root / ".deepwork")
    monkeypatch.setattr(os, "getuid", lambda: os.stat(project.root).st_uid + 1)
    assert nearest_project(below) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sesions"], "No such command 'sesions'. Did you mean 'sessions'?"),
        (["sessions", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["zzz"], "No such command 'zzz'."),
        (
            ["dashboard"],
            "No such command 'dashboard'. The plugin deepwork_dashboard has it, which is not installed or not loaded: "
            "see `deepwork plugins --all`.",
        ),
    ],
)
def test_an_unknown_command_is_told_the_one_that_was_probably_meant(words, says, run):
    ended = run(*words)
    assert ended.returncode == 2
    assert ended.stderr.rstrip().endswith(f"Error: {says}")


@pytest.mark.parametrize("words", [[], ["jobs"], ["sessions"], ["gate"]])
def test_no_summary_of_a_command_is_cut(words, run):
    assert "..." not in run(*words, "--help", COLUMNS="80").stdout.replace("[OPTIONS] COMMAND [ARGS]...", "")


@pytest.mark.parametrize("noun", ["jobs", "sessions", "gate", "plugins"])
def test_every_noun_has_list(noun, project, run):
    project.write_job()
    assert run(noun, "list").returncode == 0


def test_the_json_in_the_help_of_serve_can_be_copied(run):
    import json

    text = run("serve", "--help", COLUMNS="80").stdout
    entry = json.loads(re.search(r"^  \{.*^  \}\}\}", text, re.MULTILINE | re.DOTALL)[0])
    assert entry["mcpServers"]["deepwork"]["args"] == ["serve", "--path", "."]


def test_hints_in_a_terminal_name_commands(project, run):
    assert "Hint: `deepwork jobs list` shows all jobs" in run("gate", "try", "zzz", "a").stderr


def test_serve_in_a_terminal_says_that_it_waits_for_an_agent_and_ends_at_the_first_ctrl_c(project):
    main_end, terminal = pty.openpty()
    command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root)]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        os.close(terminal)
        line = next((line for line in server.stderr if "Waiting" in line), "")
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=240)
    os.close(main_end)
    assert line == "Waiting for an agent on stdin. Agents start this command themselves; Ctrl-C ends it.\n"
