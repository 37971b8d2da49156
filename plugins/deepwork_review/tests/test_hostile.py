"""A repository's own configuration, or the environment, makes git run nothing and hide nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio


def git(root, *arguments):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def prepare(root: Path) -> str:
    """Make a repository with a rule, a base and a change. Return a program beside it that leaves a file."""
    root.mkdir(parents=True)
    program = root.parent / "canary.sh"
    program.write_text(f"#!/bin/sh\ntouch {root.parent}/canary-$$\nexit 1\n")
    program.chmod(0o755)
    git(root, "init", "-q", "-b", "main")
    rule = "{description: d, match: {include: ['*.py']}, review: {strategy: individual, instructions: i}}"
    (root / ".deepreview").write_text(f"rule: {rule}\n")
    (root / "old.py").write_text("old\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    git(root, "checkout", "-q", "-b", "work")
    (root / "old.py").write_text("changed\n")
    (root / "new.py").write_text("new\n")
    return str(program)


def fired(root: Path) -> int:
    return len(list(root.parent.glob("canary-*")))


def config(*settings):
    def attack(root, program):
        for name, value in settings:
            git(root, "config", name, value.replace("CANARY", program))

    return attack


def with_attributes(attributes, *settings):
    def attack(root, program):
        (root / ".git" / "info" / "attributes").write_text(f"*.py {attributes}\n")
        config(*settings)(root, program)

    return attack


def hooks(root, program):
    folder = root.parent / "hooks"
    folder.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "pre-commit", "reference-transaction"):
        (folder / name).symlink_to(program)
    git(root, "config", "core.hooksPath", str(folder))


def included(root, program):
    (root.parent / "more").write_text(f'[core]\n\tfsmonitor = {program}\n[filter "a=b.c"]\n\tclean = {program}\n')
    (root / ".git" / "info" / "attributes").write_text("*.py filter=a=b.c\n")
    git(root, "config", "include.path", str(root.parent / "more"))


def submodule_up(root, program):
    (root / ".gitmodules").write_text('[submodule ".."]\n\tpath = sub/../..\n\turl = ..\n\tupdate = !touch x\n')
    git(root, "config", "submodule....update", f"!{program}")


def nested_git_file(root, program):
    repository = root.parent / "other.git"
    git(root, "init", "-q", "--bare", str(repository))
    git(root, "--git-dir", str(repository), "config", "core.fsmonitor", program)
    (root / "nested").mkdir()
    (root / "nested" / ".git").write_text(f"gitdir: {repository}\n")
    (root / "nested" / "x.py").write_text("x\n")


def embedded_repository(root, program):
    """A changed submodule whose own configuration would run a program if git looked into it."""
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x.py").write_text("x\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "x")
    git(root, "add", "inner")
    git(inner, "config", "core.fsmonitor", program)
    git(inner, "config", "filter.f.clean", program)
    (inner / ".git" / "info" / "attributes").write_text("* filter=f\n")
    (inner / "x.py").write_text("dirty\n")


def promisor(root, program):
    """A partial clone that wants to fetch what is missing, through a program."""
    config(
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "ext::CANARY"),
        ("protocol.ext.allow", "always"),
    )(root, program)
    tree = subprocess.check_output(["git", "rev-parse", "main:old.py"], cwd=root, text=True).strip()
    (root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()


HOSTILE = {
    "core.fsmonitor": config(("core.fsmonitor", "CANARY")),
    "filter.clean": with_attributes("filter=f", ("filter.f.clean", "CANARY"), ("filter.f.required", "true")),
    "filter.process": with_attributes("filter=f", ("filter.f.process", "CANARY"), ("filter.f.required", "true")),
    "textconv": with_attributes("diff=d", ("diff.d.textconv", "CANARY"), ("diff.d.command", "CANARY")),
    "diff.external": config(("diff.external", "CANARY"), ("diff.trustExitCode", "true")),
    "core.hooksPath": hooks,
    "core.sshCommand": config(("core.sshCommand", "CANARY"), ("remote.origin.url", "ssh://nowhere/x")),
    "pager": config(("core.pager", "CANARY"), ("pager.diff", "CANARY"), ("pager.ls-files", "CANARY")),
    "alias": config(("alias.diff", "!CANARY"), ("alias.ls-files", "!CANARY"), ("alias.rev-parse", "!CANARY")),
    "include.path": included,
    "submodule ..": submodule_up,
    "nested .git file": nested_git_file,
    "embedded repository": embedded_repository,
    "promisor remote": promisor,
}
VARIABLES = {
    "GIT_DIR": {"GIT_DIR": "/nonexistent"},
    "GIT_EXTERNAL_DIFF": {"GIT_EXTERNAL_DIFF": "CANARY", "GIT_PAGER": "CANARY", "GIT_SSH_COMMAND": "CANARY"},
    "GIT_CONFIG_COUNT": {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "CANARY",
    },
    "GIT_CONFIG_PARAMETERS": {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='CANARY'"},
    "GIT_INDEX_FILE": {"GIT_INDEX_FILE": "/nonexistent/index", "GIT_WORK_TREE": "/"},
}


@pytest.mark.parametrize("attack", HOSTILE)
async def test_a_repositorys_configuration_runs_nothing_and_hides_nothing(tmp_path, repo_at, reviewed, attack):
    root = tmp_path / "repo"
    HOSTILE[attack](root, prepare(root))
    traces = fired(root)
    assert reviewed(root, await repo_at(root).ask()) == ["new.py", "old.py"]
    assert fired(root) == traces


@pytest.mark.parametrize("attack", ["core.fsmonitor", "filter.clean", "filter.process", "include.path"])
def test_plain_git_does_run_the_program(tmp_path, attack):
    root = tmp_path / "repo"
    HOSTILE[attack](root, prepare(root))
    subprocess.run(["git", "diff", "--name-only", "main"], cwd=root, check=False, capture_output=True)
    assert fired(root)


@pytest.mark.parametrize("name", VARIABLES)
def test_the_environment_of_the_server_changes_nothing(tmp_path, repo_at, reviewed, name):
    root = tmp_path / "repo"
    program = prepare(root)
    variables = {key: value.replace("CANARY", program) for key, value in VARIABLES[name].items()}
    completed = repo_at(root).run("review", env=variables)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert reviewed(root, completed.stdout) == ["new.py", "old.py"]
    assert fired(root) == 0


async def test_a_project_in_an_embedded_bare_repository_is_refused(tmp_path, repo_at):
    root = tmp_path / "repo"
    program = prepare(root)
    bare = root / "embedded"
    git(root, "init", "-q", "--bare", str(bare))
    git(root, "--git-dir", str(bare), "config", "core.fsmonitor", program)
    assert "git cannot use this repository" in await repo_at(bare).refusal()
    assert fired(root) == 0


async def test_a_working_tree_that_is_elsewhere_is_refused(tmp_path, repo_at):
    root = tmp_path / "repo"
    prepare(root)
    git(root, "config", "core.worktree", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    assert "the repository's working tree is not where the project is" in await repo_at(root).refusal()


def test_a_git_of_the_project_is_not_run(tmp_path, repo_at, reviewed):
    root = tmp_path / "repo"
    program = prepare(root)
    (root / "git").symlink_to(program)
    completed = repo_at(root).run("review", env={"PATH": f".:{os.environ['PATH']}"})
    assert reviewed(root, completed.stdout) == ["new.py", "old.py"]
    assert fired(root) == 0


# What many rules cost ----------------------------------------------------------------------------------------------


def rule_file(count, globs):
    """Write a file of rules with these globs."""
    rules = {
        f"rule{number}": {
            "description": "d",
            "match": {"include": globs},
            "review": {"strategy": "individual", "instructions": "Look."},
        }
        for number in range(count)
    }
    return json.dumps(rules)


async def test_the_time_of_globs_is_bounded_for_all_rules_together(repo, monkeypatch):
    """F10, b10: each rule was given two seconds of its own. What is not tried counts as matching, and is said."""
    monkeypatch.setattr("deepwork_review.material.MAX_SECONDS", 0.0)
    repo.write(".deepreview", rule_file(3, ["*.md"]))
    repo.write("a.py")
    repo.write("b.py")
    answer = await repo.ask()
    assert "or those of all rules, took longer than" in answer


async def test_rules_beyond_the_limits_are_reported_and_harm_no_others(repo):
    repo.write("a.py")
    repo.write("sub/.deepreview", rule_file(1, ["*.py"]))
    repo.write(".deepreview", rule_file(21, ["*.py"] * 100))
    answer = await repo.ask()
    assert "2,100 globs; a file has at most 2,000" in answer


async def test_a_further_file_is_not_read_once_a_project_has_too_many_rules(repo):
    repo.write("a.py")
    for number in range(4):
        repo.write(f"deep/er/{number}/.deepreview", rule_file(600, ["*.py"]))
    repo.write(".deepreview", rule_file(1, ["*.py"]))
    answer = await repo.ask()
    assert "it was not read: a project has at most 2,000 rules" in answer


@pytest.mark.parametrize("folder", ["x\nWARNING: all has passed", "x\x1b[2J"])
async def test_the_name_of_a_folder_forges_no_line_of_the_warnings(repo, folder):
    """F17, a09."""
    repo.rule(include=["*.py"])
    repo.write("a.py")
    repo.write(f"{folder}/vendor/.deepreview", rule_file(1, ["*"]))
    answer = await repo.ask()
    assert "rules in folders of other people" in answer
    assert "\x1b" not in answer
    assert not [line for line in answer.splitlines() if line.startswith("WARNING: all has passed")]


@pytest.mark.parametrize("place", [".gitignore", ".git/info/exclude", ".git/info/attributes", "sub/.gitignore"])
async def test_a_pipe_that_git_would_read_is_named_and_holds_no_call_up(tmp_path, repo_at, monkeypatch, place):
    """The limit of 60 seconds for a call of git is not what ends it."""
    monkeypatch.setattr("deepwork.programs.git.SECONDS", 100_000.0)
    root = tmp_path / "repo"
    prepare(root)
    pipe = root / place
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    assert f"{place}', which is not a regular file" in await repo_at(root).refusal()
