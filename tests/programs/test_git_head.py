"""Branch and commit are read from files as git writes them, and are what git itself says."""

from __future__ import annotations

import subprocess

import pytest

from deepwork.programs.git_head import GitHead, read_head


@pytest.fixture
def git(tmp_path):
    """Run git in a repository with one commit on the branch `main`."""
    root = tmp_path / "repository"
    root.mkdir()

    def git(*arguments, cwd=root):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        return subprocess.run(
            ["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git.root = root
    return git


def test_branch_and_commit_are_those_of_git_also_from_a_folder_below(git):
    expected = GitHead("main", git("rev-parse", "HEAD"))
    (git.root / "a" / "b").mkdir(parents=True)
    assert read_head(git.root) == read_head(git.root / "a" / "b") == expected


def test_packed_references_branches_with_slashes_and_a_detached_head_are_read(git):
    git("checkout", "-q", "-b", "deepwork/notes-main-1")
    git("pack-refs", "--all", "--prune")
    commit = git("rev-parse", "HEAD")
    assert read_head(git.root) == GitHead("deepwork/notes-main-1", commit)
    git("checkout", "-q", "--detach")
    assert read_head(git.root) == GitHead(None, commit)


def test_a_worktree_has_its_own_branch(git, tmp_path):
    git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git("commit", "-q", "--allow-empty", "-m", "second", cwd=tmp_path / "tree")
    assert read_head(tmp_path / "tree") == GitHead("other", git("rev-parse", "other"))
    assert read_head(git.root).branch == "main"


def test_a_branch_without_a_commit_and_a_folder_outside_of_repositories(tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "new", str(tmp_path)], check=True)
    assert read_head(tmp_path) == GitHead("new", None)


@pytest.mark.parametrize("head", ["", "ref: refs/heads/../../secret", "ref: /etc/passwd", "nonsense", "x" * 9000])
def test_a_head_that_git_would_not_write_is_no_head(tmp_path, head):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert read_head(tmp_path) is None
