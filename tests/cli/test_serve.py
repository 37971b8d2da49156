"""`deepwork serve`: its options, the environment, what it says about the project. How it ends: `tests/server`."""

from __future__ import annotations

import re

import click
import pytest

from deepwork.cli.serve import serve

pytestmark = pytest.mark.anyio

# For every option a value that is wrong, or one whose effect is seen on stderr, and what is seen then.
SEEN = {
    "root": ("--path", "nowhere", r"Error: project root 'nowhere' is not a folder"),
    "no_quality_gate": ("--no-quality-gate", "perhaps", r"'perhaps' is not a valid boolean"),
    "transport": ("--transport", "smoke", r"'smoke' is not one of 'stdio', 'http', 'sse'"),
    "host": ("--host", "0.0.0.0", r"on '0.0.0.0' other machines can reach this server"),
    "allowed_hosts": ("--allowed-host", "*.example", r"'\*.example' is not a host name"),
    "token_file": ("--token-file", "nowhere", r"token file 'nowhere' cannot be read: No such file or directory"),
    "stateless": ("--stateless", "perhaps", r"'perhaps' is not a valid boolean"),
    "port": ("--port", "65536", r"65536 is not in the range"),
    "external_runner": ("--external-runner", "nobody", r"no review runner 'nobody'"),
    "quality_gate_timeout": ("--quality-gate-timeout", "0", r"0 is not in the range x>=1"),
    "quality_gate_max_attempts": ("--quality-gate-max-attempts", "many", r"'many' is not a valid integer"),
    "platform": ("--platform", "gemini", r"acme is ready, platform: gemini"),
    "tools": ("--tools", "core,nobody", r"no tool set 'nobody' \(from --tools or tools.sets\); available: acme, core"),
    "no_plugins": ("--no-plugin", "json_store", r"no store: choose state.store"),
    "plugins_dir": ("--plugins-dir", "/nowhere", r"the folder of plugins '/nowhere' cannot be read"),
    "state_store": ("--state-store", "nobody", r"no state store 'nobody'"),
    "log_level": ("--log-level", "loud", r"'loud' is not one of 'debug', 'info', 'warning', 'error'"),
    "log_json": ("--log-json", ".", r"File '.' is a directory"),
}

FLAGS = {"no_quality_gate", "stateless"}
OVER_HTTP = {"host", "allowed_hosts", "token_file"}
ENVIRONMENT = {"root": "DEEPWORK_PROJECT", "no_plugins": "DEEPWORK_NO_PLUGINS"}


@pytest.mark.parametrize("option", serve.documented_params(), ids=lambda option: option.name)
def test_every_option_has_an_environment_variable_that_does_the_same(run, install, option):
    install("good")
    name, value, pattern = SEEN[option.name]
    variable = ENVIRONMENT.get(option.name, "DEEPWORK_" + name.removeprefix("--").replace("-", "_").upper())
    http = ["--transport", "http"] if option.name in OVER_HTTP else []
    by_variable = run("serve", *http, **{variable: value})
    assert re.search(pattern, by_variable.stderr)
    if option.name not in FLAGS:
        by_option = run("serve", *http, name, value)
        assert re.search(pattern, by_option.stderr)
        assert by_option.returncode == by_variable.returncode


@pytest.mark.parametrize(
    "arguments",
    [
        ["--transport", "smoke"],
        ["--port", "-1"],
        ["--port", "http"],
        ["--quality-gate-timeout", "0"],
        ["--quality-gate-max-attempts", "-3"],
        ["--log-level", "loud"],
        ["--log-json", "."],
        ["--nonsense"],
        ["extra"],
    ],
)
def test_a_wrong_value_is_wrong_usage(run, arguments):
    ended = run("serve", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ["--external-runner", "claude"],
            "no review runner 'claude' (from --external-runner or quality_gate.runner); available: {runners}",
            "Install the distribution deepwork-claude-runner.",
        ),
        (
            ["--tools", ","],
            "no tool set is chosen",
            "Choose from: core.",
        ),
    ],
)
def test_a_wrong_choice_is_an_expected_error(run, arguments, message, hint):
    ended = run("serve", *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    stderr = re.sub(r"available: .*", "available: {runners}", ended.stderr)
    assert stderr == f"Error: {message}\nHint: {hint}\n"


def test_an_option_wins_over_its_environment_variable(run):
    ended = run("serve", "--state-store", "of_option", DEEPWORK_STATE_STORE="of_environment")
    assert "'of_option'" in ended.stderr


async def test_a_flag_can_be_set_in_the_environment(project):
    from deepwork.testing import review, step

    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.stdio_agent(env={"DEEPWORK_NO_QUALITY_GATE": "1"}) as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"


async def test_sets_are_chosen_by_a_list_with_commas_and_spaces(project):
    async with project.stdio_agent("--tools", " core , core ,") as agent:
        assert len(await agent.client.list_tools()) == 4


def test_the_log_file_is_refused_where_it_cannot_be_written(run):
    ended = run("serve", "--log-json", "nowhere/log.jsonl")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("Error: Invalid value for --log-json: cannot be written: No such file or directory\n")


@pytest.mark.usefixtures("bound_by_permissions")
def test_the_log_file_is_refused_where_it_may_not_be_written(invoke, project):
    project.root.chmod(0o500)
    with pytest.raises(click.BadParameter, match="cannot be written: Permission denied"):
        invoke("serve", "--log-json", "log.jsonl")


def test_a_log_file_on_a_full_disk_does_not_stop_the_server(run):
    """Every write to /dev/full fails; what is lost is the log, not the work."""
    ended = run("serve", "--log-json", "/dev/full", "--external-runner", "nobody")
    assert ended.returncode == 1
    assert "no review runner 'nobody'" in ended.stderr


def test_a_parent_that_was_probably_meant_is_named_in_the_log(run, project):
    project.write_job()
    below = project.root / "src" / "deep"
    below.mkdir(parents=True)
    ended = run("serve", cwd=below)
    assert ended.returncode == 0
    warning = f"WARNING deepwork: {below} has no .deepwork; perhaps --path {project.root} was meant\n"
    assert ended.stderr == warning


@pytest.mark.parametrize("has_jobs", [True, False])
def test_where_there_is_no_doubt_no_parent_is_named(run, project, has_jobs):
    if has_jobs:
        project.write_job()
    assert run("serve").stderr == ""


def test_the_project_is_the_option_else_the_environment_else_the_current_folder(run, project, tmp_path):
    """A broken configuration in each of the three tells which one was read."""
    folders = {name: tmp_path / name for name in ("option", "environment")}
    for folder in (*folders.values(), project.root):
        project.write(folder / ".deepwork" / "config.yml", "wrong: 1")
    environment = {"DEEPWORK_PROJECT": str(folders["environment"])}
    assert f"Error: {folders['option']}/" in run("serve", "--path", folders["option"], **environment).stderr
    assert f"Error: {folders['environment']}/" in run("serve", **environment).stderr
    assert f"Error: {project.root}/" in run("serve").stderr


def test_its_help_names_the_options_of_the_specification_and_how_to_connect(run):
    text = run("serve", "--help").stdout
    for option in ("--path", "--no-quality-gate", "--transport", "--port", "--external-runner", "--platform"):
        assert option in text
    assert "DEEPWORK_PROJECT" in text
    assert "mcpServers" in text
