"""Which folder a project's database belongs to."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256

import pytest

from deepwork.api import open_context
from deepwork_sql.address import choose_address


def shown(root):
    return choose_address(open_context("sql", root)).shown


def file_of(owner):
    """The file of a database that is named by a folder."""
    name = sha256(os.fsencode(owner)).hexdigest()[:24]
    return f"sqlite:///{os.environ['XDG_STATE_HOME']}/deepwork/databases/{name}/deepwork.db"


def test_a_folder_without_git_keeps_its_own_file(project):
    assert shown(project.root) == file_of(project.root)


def test_all_working_trees_of_a_repository_share_the_file_of_the_main_one(repository):
    main, linked = repository
    assert shown(main) == shown(linked) == file_of(main)


def test_a_working_tree_may_keep_its_own_file(repository):
    _, linked = repository
    (linked / ".deepwork").mkdir()
    (linked / ".deepwork" / "config.yml").write_text("plugins: {settings: {sql: {scope: worktree}}}\n")
    assert shown(linked) == file_of(linked)


def test_a_folder_in_a_working_tree_keeps_its_own_file(repository):
    _, linked = repository
    (linked / "part").mkdir()
    assert shown(linked / "part") == file_of(linked / "part")


def test_a_git_file_that_the_main_repository_does_not_know_is_not_believed(repository, tmp_path):
    """Else a folder could have its sessions written into any repository."""
    _, linked = repository
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_text((linked / ".git").read_text())
    assert shown(copy) == file_of(copy)


def test_a_git_folder_that_pretends_to_be_of_a_repository_is_not_believed(repository, tmp_path):
    main, _ = repository
    liar = tmp_path / "liar"
    (liar / "git").mkdir(parents=True)
    (liar / ".git").write_text("gitdir: git\n")
    (liar / "git" / "commondir").write_text(f"{main}/.git\n")
    (liar / "git" / "gitdir").write_text(f"{liar}/.git\n")
    assert shown(liar) == file_of(liar)


@pytest.mark.parametrize("name", ["repository.git", ".git"])
def test_all_working_trees_of_a_bare_repository_share_one_that_is_named_by_its_git_folder(tmp_path, git, name):
    bare, linked = tmp_path / "all" / name, [tmp_path / "a", tmp_path / "b"]
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare")
    tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the empty one, which every repository knows
    git(bare, "update-ref", "HEAD", commit(bare, tree))
    for folder in linked:
        git(bare, "worktree", "add", "-q", "--detach", str(folder))
    assert {shown(folder) for folder in (bare, *linked)} == {file_of(bare)}


def test_a_linked_working_tree_of_a_submodule_shares_that_of_the_submodule(repository, tmp_path, git):
    main, _ = repository
    parent, linked = tmp_path / "parent", tmp_path / "part-2"
    parent.mkdir()
    git(parent, "init", "-q")
    git(parent, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(main), "part")
    git(parent / "part", "worktree", "add", "-q", str(linked))
    assert shown(parent / "part") == shown(linked) == file_of(parent / "part")


def test_a_project_that_becomes_a_repository_later_keeps_its_database(project, git):
    before = shown(project.root)
    git(project.root, "init", "-q")
    assert shown(project.root) == before


def test_a_link_in_the_place_of_the_git_folder_opens_no_database_of_another_project(repository, tmp_path):
    main, _ = repository
    liar = tmp_path / "liar"
    liar.mkdir()
    (liar / ".git").symlink_to(main / ".git")
    assert shown(liar) == file_of(liar)


def test_a_git_file_that_is_a_pipe_or_endless_makes_nobody_wait(project):
    for kind in ("pipe", "endless"):
        path = project.root / ".git"
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
        assert shown(project.root) == file_of(project.root)
        path.unlink()


def commit(bare, tree):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit-tree", tree, "-m", "x"]
    subprocess.run(["git", "mktree"], cwd=bare, check=True, input=b"", capture_output=True)
    return subprocess.run(command, cwd=bare, check=True, capture_output=True, text=True).stdout.strip()
