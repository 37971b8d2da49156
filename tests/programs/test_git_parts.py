"""Repositories of archives: what git itself never carries makes no call wait, and leads git nowhere else."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from deepwork.api import Git, open_context
from deepwork.errors import GitError
from deepwork.programs import git as git_module

pytestmark = pytest.mark.anyio

LISTED = ("ls-files", "--others", "--exclude-standard")


def run(folder, *arguments):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def make_repository(folder, content="content\n"):
    folder.mkdir(parents=True, exist_ok=True)
    run(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text(content)
    run(folder, "add", "file")
    run(folder, "commit", "-q", "-m", "first")


@pytest.fixture
def repository(project):
    make_repository(project.root)
    return project.root


@pytest.fixture
def private(tmp_path):
    """Another repository of the user's."""
    make_repository(tmp_path / "private", "secret\n")
    return tmp_path / "private"


# Special files.


@pytest.mark.parametrize(
    "place",
    [
        *(".gitignore", ".gitattributes", ".git/info/exclude", ".git/info/attributes", ".git/config", ".git/HEAD"),
        *(".git/refs/heads/other", ".git/logs/other", ".git/commondir", ".git/objects/info/alternates", ".git"),
    ],
)
async def test_a_special_file_that_git_would_read_is_refused_before_git_starts(repository, monkeypatch, place):
    target = repository / place
    shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
    os.mkfifo(target)

    async def fail(*_, **__):
        raise AssertionError("git was started")

    monkeypatch.setattr(git_module, "run_program", fail)
    with pytest.raises(GitError, match="not a regular file") as caught:
        await Git.open(repository, os.environ)
    assert str(target) in caught.value.message


@pytest.mark.parametrize("key", ["core.excludesFile", "core.attributesFile", "include.path", "includeIf.gitdir:/.path"])
async def test_a_special_file_that_the_configuration_names_is_refused(repository, tmp_path, key):
    os.mkfifo(tmp_path / "pipe")
    run(repository, "config", "--file", ".git/config", key, str(tmp_path / "pipe"))
    with pytest.raises(GitError, match="not a regular file"):
        await Git.open(repository, os.environ)


async def test_a_special_file_in_any_folder_ends_the_call_that_would_wait_for_it(repository):
    (repository / "sub").mkdir()
    os.mkfifo(repository / "sub" / ".gitignore")
    git = await Git.open(repository, os.environ)
    with pytest.raises(GitError, match=r"sub/\.gitignore"):
        await git.run(*LISTED)


async def test_a_configuration_that_names_dev_null_is_not_refused(repository):
    run(repository, "config", "core.excludesFile", os.devnull)
    git = await Git.open(repository, os.environ)
    assert await git.run(*LISTED) == b""


# Parts that lie elsewhere.


def led_by_a_file(root, private):
    (root / ".git").write_text(f"gitdir: {os.path.relpath(private / '.git', root)}\n")


def led_by_a_link(root, private):
    (root / ".git").symlink_to(private / ".git")


def led_by_commondir(root, private):
    make_repository(root)
    (root / ".git" / "commondir").write_text(f"{private}/.git\n")


def led_by_alternates(root, private):
    make_repository(root)
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{private}/.git/objects\n")


def led_by_a_reference(root, private):
    make_repository(root)
    (root / ".git" / "refs" / "heads" / "evil").symlink_to(private / ".git" / "refs" / "heads" / "main")


def led_by_a_log(root, private):
    make_repository(root)
    (root / ".git" / "logs" / "refs" / "heads" / "b").symlink_to(private / "file")


def led_by_objects(root, private):
    make_repository(root)
    (root / ".git" / "objects" / "pack").rmdir()
    (root / ".git" / "objects" / "pack").symlink_to(private / ".git" / "objects")


def led_by_a_worktree(root, private):
    """A `worktrees` folder of git's own that lies elsewhere would be written to."""
    make_repository(root)
    (root / ".git" / "worktrees").symlink_to(private)


ELSEWHERE = [
    *(led_by_a_file, led_by_a_link, led_by_commondir, led_by_alternates),
    *(led_by_a_reference, led_by_a_log, led_by_objects, led_by_a_worktree),
]


@pytest.mark.parametrize("lead", ELSEWHERE, ids=lambda lead: lead.__name__)
async def test_parts_of_a_repository_that_lie_elsewhere_wait_for_trust(project, private, lead):
    lead(project.root, private)
    async with open_context("test", project.root) as context:
        with pytest.raises(GitError, match="lie elsewhere") as caught:
            await context.git(Git)
        assert str(private) in caught.value.message
        assert "deepwork trust" in caught.value.hint
    (label,) = project.trust()
    assert label == git_module.ELSEWHERE
    if lead is not led_by_commondir:  # git itself finds no HEAD there
        async with open_context("another", project.root) as context:
            assert await context.git(Git)


async def test_what_is_trusted_is_asked_again_when_it_leads_to_another_folder(project, private, tmp_path):
    led_by_alternates(project.root, private)
    async with open_context("test", project.root) as context:
        with pytest.raises(GitError):
            await context.git(Git)
    project.trust()
    make_repository(tmp_path / "third")
    (project.root / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/third/.git/objects\n")
    async with open_context("test", project.root) as context:
        with pytest.raises(GitError, match="third"):
            await context.git(Git)


async def test_worktrees_and_submodules_that_name_their_repository_and_are_named_by_it_need_no_trust(private, tmp_path):
    run(private, "worktree", "add", "-q", str(tmp_path / "linked"))
    make_repository(tmp_path / "inner")
    run(private, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "inner"), "inner")
    for folder in (tmp_path / "linked", private / "inner", private):
        git = await Git.open(folder, os.environ)
        assert git.top == folder


async def test_a_worktree_that_its_repository_does_not_name_waits_for_trust(project, private):
    run(private, "worktree", "add", "-q", str(private / "linked"))
    shutil.copy(private / "linked" / ".git", project.root / ".git")
    with pytest.raises(GitError, match="lie elsewhere"):
        await Git.open(project.root, os.environ)


@pytest.mark.parametrize("has_repository", [False, True])
async def test_no_working_tree_above_the_repository_is_read(project, has_repository):
    """Also where there is another repository, which has nothing to do with this one."""
    if has_repository:
        make_repository(project.root)
    below = project.root / "below"
    make_repository(below)
    run(below, "config", "core.worktree", str(project.root))
    with pytest.raises(GitError, match=r"core\.worktree"):
        await Git.open(below, os.environ)
