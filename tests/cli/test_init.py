"""`deepwork init` in a fresh folder, again, and where something is in the way."""

from __future__ import annotations

import os
import re

import click
import pytest
import yaml

from deepwork.builtin.clients.verification import Verified
from deepwork.paths.folder import Folder
from deepwork.project.config import Config

pytestmark = pytest.mark.anyio

# Runs a module that may write files of this size at most: then a write fails as on a full disk.
SMALL_FILES = """\
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
del sys.argv[:2]
runpy.run_module("deepwork", run_name="__main__")
"""


def everything(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_it_makes_a_configuration_and_a_sample_job(run, project):
    ended = run("init")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[:2] == [
        "created  .deepwork/config.yml",
        "created  .deepwork/jobs/project_tour",
    ]
    files = everything(project.root)
    assert ".deepwork/jobs/project_tour/job.yml" in files
    assert files[".deepwork/tmp/.gitignore"] == b"*\n"


def test_it_prints_the_next_step(run):
    printed = run("init").stdout
    assert "Next: connect your agent, for example with `deepwork connect claude`" in printed
    assert "project_tour" in printed


@pytest.fixture
def clients_here(tmp_path, monkeypatch):
    """Put programs of clients into PATH, and start no server for them, which other tests do."""
    monkeypatch.setattr("deepwork.builtin.clients.connect.verify", lambda *_: Verified([], 0, 0, answers_hooks=True))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("claude", "codex"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_without_a_terminal_it_connects_nothing_and_prints_the_line_for_each_client_that_is_here(
    invoke, project, clients_here
):
    ended = invoke("init")
    assert ended.code == 0
    assert "Next: connect your agent:\n  deepwork connect claude\n  deepwork connect codex\nThen ask it:" in ended.out
    assert [path.name for path in project.root.iterdir()] == [".deepwork"]


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        ("\n", {".mcp.json", ".claude", ".codex"}),
        ("codex\n", {".codex"}),
        (" codex , claude\n", {".mcp.json", ".claude", ".codex"}),
        ("cursor\ncodex\n", {".codex"}),
        ("none\n", set()),
    ],
)
def test_at_a_terminal_it_asks_which_clients_to_connect_and_all_are_chosen(
    invoke, project, clients_here, answer, files
):
    ended = invoke("init", "--tools", "core", answer=answer)
    assert ended.code == 0
    assert "\nHere are: claude (Claude Code), codex (Codex)\n" in ended.err
    assert ("cursor is not one of claude, codex" in ended.err) == ("cursor" in answer)
    assert {path.name for path in project.root.iterdir()} == {".deepwork", *files}
    assert "Next: ask your agent" in ended.out or not files


def test_a_client_that_cannot_be_connected_does_not_keep_the_others_from_it(invoke, project, clients_here):
    project.write(".claude/settings.local.json", "{")
    ended = invoke("init", "--tools", "core", answer="\n")
    assert ended.code == 1
    assert "Error: .claude/settings.local.json: line 1, column 2" in ended.err
    assert not (project.root / ".mcp.json").exists()
    assert "connected  .codex/config.toml" in ended.out


def test_clients_that_are_connected_are_not_asked_for_again(invoke, project, clients_here):
    invoke("init", "--tools", "core", answer="\n")
    assert "Connect which?" not in invoke("init", answer="\n").err


@pytest.mark.parametrize(("chosen", "next_step"), [("codex", "ask your agent: "), ("none", "connect your agent:")])
def test_who_has_connected_a_client_is_not_told_to_connect_one(invoke, project, clients_here, chosen, next_step):
    invoke("init", "--tools", "core", answer=f"{chosen}\n")
    assert f"\nNext: {next_step}" in invoke("init").out


@pytest.mark.parametrize("options", [(), ("--no-hooks",)])
def test_hooks_come_with_a_client_unless_they_are_declined(invoke, project, clients_here, options):
    assert invoke("init", "--client", "claude", *options).code == 0
    assert (project.root / ".claude/settings.local.json").exists() == (not options)


def test_again_it_keeps_everything_as_it_is(run, project):
    run("init")
    project.write(".deepwork/config.yml", "# mine\n")
    project.write(".deepwork/jobs/project_tour/steps/survey.md", "mine\n")
    before = everything(project.root)
    ended = run("init")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[:2] == [
        "kept     .deepwork/config.yml",
        "kept     .deepwork/jobs/project_tour",
    ]
    assert everything(project.root) == before


@pytest.mark.parametrize(("size", "name"), [(1000, "config.yml"), (2000, "jobs"), (10_000, "schema")])
def test_a_disk_that_fills_up_leaves_no_part_of_a_file_that_the_next_run_would_keep(run, project, size, name):
    ended = run("init", options=("-c", SMALL_FILES.format(size)))
    assert (ended.returncode, ended.stderr) == (1, "Error: .deepwork: File too large\n")
    made = {file for file in everything(project.root) if name in file}
    assert made == set()
    run("init")
    assert run("jobs", "check").stderr == "1 job checked, no errors.\n"


def test_a_file_that_another_run_makes_meanwhile_is_kept(invoke, project, monkeypatch):
    monkeypatch.setattr(Folder, "names", lambda _: [])
    project.write(".deepwork/config.yml", "# mine\n")
    project.write(".deepwork/jobs/project_tour/job.yml", "# mine\n")
    printed = invoke("init").out
    for name in ("config.yml", "jobs/project_tour"):
        assert f"kept     .deepwork/{name}" in printed
    for name in ("config.yml", "jobs/project_tour/job.yml"):
        assert (project.root / ".deepwork" / name).read_text() == "# mine\n"


def test_what_is_missing_is_made_beside_what_is_there(run, project):
    project.write(".deepwork/config.yml", "# mine\n")
    printed = run("init").stdout.splitlines()
    assert printed[:2] == ["kept     .deepwork/config.yml", "created  .deepwork/jobs/project_tour"]


def test_the_configuration_is_valid_as_it_is_and_with_every_comment_taken_away(run, project):
    run("init")
    text = (project.root / ".deepwork" / "config.yml").read_text()
    Config.model_validate(yaml.safe_load(text))
    bare = re.sub(r"^# (?=[a-z_]+:|  )", "", text, flags=re.MULTILINE).replace("{…}", "{}")
    everything = Config.model_validate(yaml.safe_load(bare))
    assert everything.tools.sets
    assert set(everything.tools.sets) <= {"core", "review"}
    assert [*everything.quality_gate.commands] == ["tests"]
    examples = {"version": True, "platforms": True, "tools": True, "quality_gate": {"commands"}}
    assert everything.model_dump(exclude=examples) == Config().model_dump(exclude=examples)


@pytest.fixture
def tool_sets(monkeypatch, project, tmp_path):
    """Make the core, a set that everybody needs and one for some the only sets that are installed."""
    plugin = project.write(
        f"plugins/sets_{tmp_path.name}.py",  # a module is imported once in this process
        """
from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec

def look() -> str:
    \"\"\"Look at something.\"\"\"
    return ""

@hookimpl
def deepwork_tool_sets():
    for name in ("review", "planning"):
        yield ToolSet(name, [ToolSpec("look", look, title="Look", output="text")], prefix=f"{name}_")
""",
    )
    monkeypatch.setenv("DEEPWORK_PLUGINS_DIR", str(plugin.parent))


def chosen_sets(project):
    return yaml.safe_load((project.root / ".deepwork" / "config.yml").read_text())["tools"]["sets"]


def test_without_a_terminal_agents_get_the_sets_that_everybody_needs(invoke, project, tool_sets):
    ended = invoke("init")
    assert chosen_sets(project) == ["core", "review"]
    assert "tools    core, review; tools.sets in .deepwork/config.yml adds others" in ended.out


@pytest.mark.parametrize(
    ("answer", "sets"),
    [
        ("\n", ["core", "review"]),
        ("core, planning\n", ["core", "planning"]),
        ("core,planing\ncore\n", ["core"]),
    ],
)
def test_at_a_terminal_it_asks_which_sets_agents_get_and_says_what_each_costs(invoke, project, tool_sets, answer, sets):
    ended = invoke("init", answer=f"{answer}none\n")
    assert re.search(r"^Tools cost an agent tokens", ended.err, re.MULTILINE)
    assert re.search(r"^  planning: 1 tools, about \d+ tokens$", ended.err, re.MULTILINE)
    assert ("no tool set 'planing'" in ended.err) == ("planing" in answer)
    assert chosen_sets(project) == sets


def test_an_option_names_the_sets_without_a_question(invoke, project, tool_sets):
    assert invoke("init", "--tools", "core,planning").code == 0
    assert chosen_sets(project) == ["core", "planning"]


def test_a_set_that_is_not_installed_is_refused_before_a_configuration_is_written(invoke, project, tool_sets):
    with pytest.raises(click.BadParameter, match="no tool set 'planing'"):
        invoke("init", "--tools", "planing")
    assert not (project.root / ".deepwork" / "config.yml").exists()


def test_the_sets_of_a_configuration_that_exists_are_its_own(invoke, project):
    project.write(".deepwork/config.yml", "tools: {sets: [core]}\n")
    ended = invoke("init", "--tools", "review")
    assert ended.code == 1
    assert ".deepwork/config.yml exists, and is kept as it is\nHint: Set tools.sets: [review] there." in ended.err
    assert chosen_sets(project) == ["core"]
    assert "\ntools " not in invoke("init", answer="\n").out


async def test_the_sample_can_be_worked_through(run, project):
    run("init")
    async with project.agent() as agent:
        begin = await agent.start("project_tour", "write_tour")
        assert begin["job_dir"] == str(project.jobs / "project_tour")
        while begin:
            names = {output["name"]: output["name"] for output in begin["step_expected_outputs"]}
            for name in names:
                project.write(name)
            answer = await agent.finish(names, quality_review_override_reason="All criteria passed")
            begin = answer.get("begin_step")
    assert answer["status"] == "workflow_complete"


def test_the_project_is_the_option_else_the_environment_else_the_current_folder(run, project, tmp_path):
    for name in ("option", "environment"):
        (tmp_path / name).mkdir()
    environment = {"DEEPWORK_PROJECT": str(tmp_path / "environment")}
    run("init", "--path", tmp_path / "option", **environment)
    assert (tmp_path / "option" / ".deepwork" / "config.yml").exists()
    assert not (tmp_path / "environment" / ".deepwork").exists()
    run("init", **environment)
    assert (tmp_path / "environment" / ".deepwork" / "config.yml").exists()
    assert not (project.root / ".deepwork").exists()
    run("init")
    assert (project.root / ".deepwork" / "config.yml").exists()


@pytest.mark.parametrize("link", [".deepwork", ".deepwork/tmp", ".deepwork/jobs", ".deepwork/schema"])
def test_a_folder_that_is_a_link_out_of_the_project_is_refused_and_nothing_is_written_there(
    run, project, tmp_path, link
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / link).parent.mkdir(exist_ok=True)
    (project.root / link).symlink_to(outside)
    ended = run("init")
    assert ended.returncode == 1
    assert re.fullmatch(r"Error: .*lies outside of the project.*\n(Hint: .*\n)?", ended.stderr)
    assert os.listdir(outside) == []


@pytest.mark.parametrize("link", ["config.yml", "jobs/project_tour", "schema/config.schema.json"])
@pytest.mark.parametrize("exists", [True, False])
def test_no_link_that_stands_where_it_writes_is_written_through(run, project, tmp_path, link, exists):
    outside = tmp_path / "outside"
    if exists:
        outside.write_text("mine")
    place = project.root / ".deepwork" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    ended = run("init")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert outside.exists() == exists
    assert not exists or outside.read_text() == "mine"


def test_a_file_in_the_way_is_an_expected_error(run, project):
    project.write(".deepwork", "in the way")
    ended = run("init")
    assert (ended.returncode, ended.stderr) == (1, "Error: '.deepwork' is not a folder\n")
