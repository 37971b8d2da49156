"""Where settings come from, which one wins, and how a wrong one is refused."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork.errors import ConfigError, UnknownName
from deepwork.server import create_server
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

GOOD = Path(__file__).parents[1] / "data" / "dists" / "good"


@pytest.fixture
def write_user(project):
    """Write the user's own file."""
    return lambda text: project.write(Path(os.environ["XDG_CONFIG_HOME"]) / "deepwork" / "config.yml", text)


@pytest.fixture
def write_config(project):
    """Write the project's file."""
    return lambda text: project.write(".deepwork/config.yml", text)


@pytest.fixture
def refused(project):
    """Make a server that has to be refused, and give the error's text with the project's root left out."""

    def refused(**options):
        with pytest.raises(ConfigError) as error:
            project.server(**options)
        return error.value.message.replace(f"{project.root}/", "")

    return refused


@pytest.fixture
def serve(project):
    """Run `deepwork serve` with stdin closed."""

    def serve(*arguments, **environment):
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root), *arguments]
        env = {**os.environ, **environment}
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, env=env)

    return serve


@pytest.mark.parametrize("content", ["", "{}", "# nothing but a comment\n", "null"])
def test_an_empty_file_changes_nothing(project, write_config, content):
    write_config(content)
    assert project.server().name == "deepwork"


def test_every_key_may_stand_in_either_file(project, write_config, write_user):
    everything = """
version: "1.0"
platforms: [claude]
state: {store: json}
quality_gate: {enabled: true, runner: null, timeout: 120, max_attempts: 3}
tools: {sets: [core], prefix: {core: ""}}
plugins: {block: [nobody], require: [json_store], settings: {acme: {greeting: hi}}}
allowed_output_roots: []
"""
    write_config(everything)
    write_user(everything)
    assert project.server().name == "deepwork"


@pytest.mark.parametrize(
    "content", ['version: "1.0"\nplatforms:\n  - claude\n', "version: 1.0", "version: 2\nplatforms: claude\n"]
)
def test_version_and_platforms_of_older_files_are_always_accepted(project, write_config, content):
    write_config(content)
    assert project.server().name == "deepwork"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sttate: {}\n", ":1: unknown key 'sttate'; did you mean 'state'?"),
        ("# a comment\nstate:\n  stor: json\n", ":3: state: unknown key 'stor'; did you mean 'store'?"),
        ("quality_gate:\n  timeout: 9\n  max: 9\n", ":3: quality_gate: unknown key 'max'; {quality_gate}"),
        ("zzz: 1\n", ":1: unknown key 'zzz'; {top}"),
    ],
)
def test_an_unknown_key_is_refused_with_file_line_and_the_nearest_key(refused, write_config, content, message):
    write_config(content)
    valid = {
        "top": "valid: allowed_output_roots, notifications, platforms, plugins, quality_gate, state, tools, version",
        "quality_gate": "valid: commands, concurrency, enabled, keep, max_attempts, person_after, prove, runner, "
        "runners, strict, timeout",
    }
    assert refused() == f".deepwork/config.yml{message.format(**valid)}"


def test_every_unknown_key_is_named_at_once(refused, write_config):
    write_config("stat: {}\ntools:\n  sts: []\n")
    assert sorted(refused().splitlines()) == [
        ".deepwork/config.yml:1: unknown key 'stat'; did you mean 'state'?",
        ".deepwork/config.yml:3: tools: unknown key 'sts'; did you mean 'sets'?",
    ]


def test_an_unknown_key_of_the_users_file_is_refused_with_that_file(refused, write_user):
    file = write_user("\nstat: {}\n")
    assert refused() == f"{file}:2: unknown key 'stat'; did you mean 'state'?"


@pytest.mark.parametrize(
    ("content", "line", "key", "value"),
    [
        ("quality_gate:\n  timeout: '120'\n", 2, "quality_gate.timeout", "'120'"),
        ("quality_gate:\n  timeout: 0\n", 2, "quality_gate.timeout", "0"),
        ("quality_gate: {max_attempts: true}\n", 1, "quality_gate.max_attempts", "true"),
        ("quality_gate:\n  enabled: 'on'\n", 2, "quality_gate.enabled", "'on'"),
        ("\ntools:\n  sets: core\n", 3, "tools.sets", "'core'"),
        ("tools: {prefix: {core: 7}}\n", 1, "tools.prefix.core", "7"),
        ("state: {store: [json]}\n", 1, "state.store", ""),
        ("plugins: {block: acme}\n", 1, "plugins.block", "'acme'"),
        ("plugins: {settings: {acme: 7}}\n", 1, "plugins.settings.acme", "7"),
        ("state: json\n", 1, "state", "'json'"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_line_key_and_value(refused, write_config, content, line, key, value):
    write_config(content)
    message = refused()
    assert message.startswith(f".deepwork/config.yml:{line}: {key}: ")
    assert value in message


@pytest.mark.parametrize("content", ["[]", "7", "just text"])
def test_a_file_that_is_no_mapping_is_refused(refused, write_config, content):
    write_config(content)
    assert refused().startswith(".deepwork/config.yml:1: ")


@pytest.mark.parametrize(
    ("content", "start"),
    [
        ("tools:\n  sets: [core\n", ".deepwork/config.yml:3: "),
        ("\tstate: 1", ".deepwork/config.yml:1: "),
        ("state: {store: json}\nstate: {store: memory}\n", ".deepwork/config.yml:2: key 'state'"),
        (b"state: {}\n\xff\n", ".deepwork/config.yml:2: byte 0xff is not UTF-8"),
        ("a: &a [*a]", ".deepwork/config.yml:1: "),
    ],
    ids=["unclosed", "tab", "duplicate", "not UTF-8", "cycle"],
)
def test_broken_yaml_is_refused_with_its_line(refused, write_config, content, start):
    write_config(content)
    assert refused().startswith(start)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is a pipe, not a regular file"),
        (os.mkdir, "is a folder, not a regular file"),
        (lambda file: file.symlink_to(os.devnull), "lies outside of the project"),
        (lambda file: file.symlink_to("/etc/hosts"), "lies outside of the project"),
    ],
    ids=["pipe", "folder", "device", "link out"],
)
def test_a_config_that_is_no_file_of_the_project_is_refused_at_once(project, refused, make, message):
    file = project.root / ".deepwork" / "config.yml"
    file.parent.mkdir()
    make(file)
    assert refused() == f".deepwork/config.yml {message}"


def test_a_link_inside_of_the_project_is_followed(project):
    project.write("settings.yml", "state: {store: nobodys}")
    (project.root / ".deepwork").mkdir()
    (project.root / ".deepwork" / "config.yml").symlink_to("../settings.yml")
    with pytest.raises(UnknownName, match="'nobodys'"):
        project.server()


def test_the_users_file_may_be_a_link_to_anywhere(project, write_user, tmp_path):
    target = tmp_path / "dotfiles.yml"
    target.write_text("state: {store: nobodys}")
    write_user("").unlink()
    Path(os.environ["XDG_CONFIG_HOME"], "deepwork", "config.yml").symlink_to(target)
    with pytest.raises(UnknownName, match="'nobodys'"):
        project.server()


def test_without_xdg_config_home_the_users_file_is_in_home(serve, tmp_path):
    file = tmp_path / "home" / ".config" / "deepwork" / "config.yml"
    file.parent.mkdir(parents=True)
    file.write_text("state: {store: at_home}")
    assert "no state store 'at_home'" in serve(XDG_CONFIG_HOME="", HOME=str(tmp_path / "home")).stderr


SOURCES = ["user", "project", "environment", "option"]


@pytest.mark.parametrize("strongest", SOURCES)
def test_options_win_over_the_environment_over_the_project_over_the_user(serve, write_user, write_config, strongest):
    sources = SOURCES[: SOURCES.index(strongest) + 1]
    write_user("state: {store: of_user}")
    if "project" in sources:
        write_config("state: {store: of_project}")
    environment = {"DEEPWORK_STATE_STORE": "of_environment"} if "environment" in sources else {}
    options = ["--state-store", "of_option"] if "option" in sources else []
    ended = serve(*options, **environment)
    assert ended.returncode == 1
    assert (
        f"no state store 'of_{strongest}' (from --state-store or state.store); available: json, memory" in ended.stderr
    )


async def test_settings_of_one_section_come_from_all_sources_together(project, write_user, write_config):
    write_user("quality_gate: {max_attempts: 7, timeout: 10, runner: acme}")
    write_config("quality_gate: {timeout: 20}")
    environment = {"DEEPWORK_QUALITY_GATE_TIMEOUT": "30", "PYTHONPATH": str(GOOD)}
    async with project.stdio_agent("--quality-gate-timeout", "40", env=environment) as agent:
        answer = await agent.client.call_tool("acme_gate")
    assert json.loads(answer.content[0].text) == {
        "external": True,
        "max_inline_files": 0,
        "timeout": 40,
        "max_attempts": 7,
    }


async def test_the_gate_can_be_turned_off_in_the_users_file(project, write_user):
    write_user("quality_gate: {enabled: false}")
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.stdio_agent() as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"


async def test_no_file_overrides_the_first_five_arguments_of_create_server(project, write_config, monkeypatch):
    monkeypatch.syspath_prepend(str(GOOD))
    write_config("quality_gate: {enabled: false, runner: nobodys, timeout: 1, max_attempts: 1}")
    async with project.agent(tools=["acme"]) as agent:
        answer = await agent.client.call_tool("gate")
    assert json.loads(answer.content[0].text) == {
        "external": False,
        "max_inline_files": 0,
        "timeout": 120,
        "max_attempts": 3,
    }


async def test_the_first_five_arguments_of_create_server_may_be_given_by_position(project, monkeypatch):
    monkeypatch.syspath_prepend(str(GOOD))
    server = create_server(str(project.root), True, 5, 2, "acme", tools=["acme"])  # the spec's order
    answer = await server.call_tool("gate")
    assert json.loads(answer.content[0].text) == {
        "external": True,
        "max_inline_files": 0,
        "timeout": 5,
        "max_attempts": 2,
    }
    with pytest.raises(TypeError):
        create_server(str(project.root), True, 5, 2, "acme", ["acme"])


async def test_arguments_of_create_server_win_over_the_files(project, write_config):
    write_config("state: {store: nobodys}\ntools: {sets: [nobodys]}")
    assert project.server(state_store="memory", tools=["core"]).name == "deepwork"


def test_a_plugin_that_the_configuration_requires_has_to_be_there(refused, write_config):
    write_config("plugins: {require: [acme]}")
    assert refused() == "plugins.require names 'acme', which is not installed or is blocked"


@pytest.mark.parametrize("name", ["acme", "acme-tracker"])
async def test_a_plugin_that_the_configuration_blocks_offers_nothing(project, write_config, monkeypatch, name):
    monkeypatch.syspath_prepend(str(GOOD))
    write_config(f"plugins: {{block: [{name}]}}")
    names = [tool.name for tool in await project.server().list_tools()]
    assert names == ["get_workflows", "start_workflow", "finished_step", "abort_workflow"]


@pytest.fixture
def outside(project, tmp_path):
    """A file outside of the project, and a workflow that could hand it in."""
    project.write_job(steps=[step("a")])
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.md").write_text("made elsewhere")
    return folder


NO_EFFECT = re.compile(r"allowed_output_roots .*has no effect until you run `deepwork trust`")


async def finish_with(project, file):
    async with project.agent() as agent:
        await agent.start()
        answer = await agent.client.call_tool("finished_step", {"outputs": {"a.md": str(file)}}, raise_on_error=False)
        return not answer.is_error


async def test_allowed_output_roots_of_a_project_have_no_effect_and_the_log_says_so(
    project, outside, write_config, caplog
):
    write_config(f"allowed_output_roots: [{outside}]")
    with caplog.at_level(logging.WARNING):
        assert not await finish_with(project, outside / "a.md")
    assert len(NO_EFFECT.findall(caplog.text)) == 1


async def test_allowed_output_roots_of_the_user_count(project, outside, write_user):
    write_user(f"allowed_output_roots: [{outside}]")
    assert await finish_with(project, outside / "a.md")


async def test_allowed_output_roots_of_the_environment_win_over_the_users(project, outside, write_user, monkeypatch):
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", f"/nowhere{os.pathsep}{outside}")
    assert await finish_with(project, outside / "a.md")
    write_user(f"allowed_output_roots: [{outside}]")
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", "")
    assert not await finish_with(project, outside / "a.md")


async def test_a_projects_roots_do_not_take_the_users_away(project, outside, write_user, write_config):
    write_user(f"allowed_output_roots: [{outside}]")
    write_config("allowed_output_roots: []")
    assert await finish_with(project, outside / "a.md")


def test_serve_refuses_a_broken_file_with_exit_1_and_no_traceback(serve, project, write_config):
    write_config("state:\n  stor: json\n")
    ended = serve()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"Error: {project.root}/.deepwork/config.yml:2: state: unknown key 'stor'; did you mean 'store'?\n"
    )


def test_serve_says_in_its_log_that_a_projects_roots_have_no_effect(serve, write_config):
    write_config("allowed_output_roots: [/]")
    ended = serve()
    assert ended.returncode == 0
    assert len(NO_EFFECT.findall(ended.stderr)) == 1


def test_a_project_root_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ConfigError) as error:
        create_server(tmp_path / "nowhere")
    assert error.value.message == f"project root '{tmp_path}/nowhere' is not a folder"


def test_a_project_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        create_server(tmp_path / "file")


async def test_a_relative_project_root_is_made_absolute(project, monkeypatch):
    project.write_job()
    monkeypatch.chdir(project.root.parent)
    server = create_server(project.root.name)
    monkeypatch.chdir("/")
    async with project.agent(server) as agent:
        assert (await agent.start())["job_dir"] == str(project.jobs / "demo")
