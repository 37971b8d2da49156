"""The files that a task has changed, in all states in which git can be, through the tools."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def worked(repo):
    """Start a task, let a function work, and give what the task is charged with."""

    async def worked(work, *, areas=None, **more):
        async with repo.tracker() as agent:
            workflow_id = await agent.workflow()
            started = await agent.start(workflow_id, await agent.phase(workflow_id), areas=areas, **more)
            work()
            return started, await agent.complete(started["task_id"])

    return worked


def files(completion):
    return tuple(completion["files_changed"][word] for word in ("added", "modified", "deleted"))


async def test_committed_staged_unstaged_and_untracked_files_are_each_listed_once(repo, worked):
    for name in ("committed", "staged", "unstaged", "gone", "both"):
        repo.write(name, "before\n")
    repo.commit()

    def work():
        repo.write("committed", "changed\n")
        repo.write("new_committed")
        repo.write("both", "committed\n")
        repo.commit()
        repo.write("both", "and changed again\n")
        repo.write("staged", "changed\n")
        repo.write("new_staged")
        repo.git("add", "-A")
        repo.write("unstaged", "changed\n")
        repo.write("untracked")
        (repo.root / "gone").unlink()

    _, completion = await worked(work)
    assert files(completion) == (
        ["new_committed", "new_staged", "untracked"],
        ["both", "committed", "staged", "unstaged"],
        ["gone"],
    )


async def test_a_renamed_file_is_deleted_under_its_old_name_and_added_under_its_new_one(repo, worked):
    repo.write("old", "x\n" * 50)
    repo.commit()
    _, completion = await worked(lambda: repo.git("mv", "old", "new"))
    assert files(completion) == (["new"], [], ["old"])


async def test_words_are_relative_to_the_start_of_the_task(repo, worked):
    def work():
        repo.write("edited_after_commit")
        repo.write("removed_after_commit")
        repo.write("README.md", "changed\n")
        repo.commit()
        repo.write("edited_after_commit", "changed\n")
        (repo.root / "removed_after_commit").unlink()
        repo.write("README.md")

    _, completion = await worked(work)
    assert files(completion) == (["edited_after_commit"], [], [])


async def test_what_was_dirty_before_is_charged_only_if_the_task_has_changed_it(repo, worked):
    for name in ("left", "touched", "deleted", "reverted"):
        repo.write(name, "before\n")
    repo.commit()
    for name in ("left", "touched", "reverted", "untracked_left", "untracked_touched", "untracked_gone"):
        repo.write(name, "dirty\n")
    (repo.root / "deleted").unlink()

    def work():
        repo.write("touched", "changed\n")
        repo.write("untracked_touched", "changed\n")
        (repo.root / "untracked_gone").unlink()
        repo.write("reverted", "before\n")
        repo.write("deleted", "before\n")
        repo.write("clean")

    _, completion = await worked(work)
    assert files(completion) == (
        ["clean", "deleted"],
        ["reverted", "touched", "untracked_touched"],
        ["untracked_gone"],
    )
    assert completion["verification"]["changed_before_start"] == [
        *("deleted", "reverted", "touched", "untracked_gone", "untracked_touched")
    ]


async def test_dirty_files_that_the_task_only_commits_are_not_charged_to_it(repo, worked):
    repo.write("README.md", "dirty\n")
    repo.write("untracked")
    _, completion = await worked(repo.commit)
    assert files(completion) == ([], [], [])


async def test_a_mode_and_a_link_are_changes(repo, worked):
    repo.write("script", "#!/bin/sh\n")
    repo.write("file")
    repo.commit()

    def work():
        (repo.root / "script").chmod(0o755)
        (repo.root / "file").unlink()
        (repo.root / "file").symlink_to("script")

    _, completion = await worked(work)
    assert files(completion) == ([], ["file", "script"], [])


async def test_every_name_that_git_allows_is_listed(repo, worked):
    names = ["two words", "new\nline", "tab\t", 'quo"te', "日本", "-rf", "back\\slash", b"caf\xe9"]

    def work():
        for name in names:
            descriptor = os.open(os.path.join(os.fsencode(repo.root), os.fsencode(name)), os.O_CREAT | os.O_WRONLY)
            os.close(descriptor)

    _, completion = await worked(work)
    assert completion["files_changed"]["added"] == sorted([*names[:-1], "caf\\xe9"])


@pytest.mark.parametrize("step", ["detached", "worktree"])
async def test_a_detached_head_and_a_linked_worktree_are_compared_like_any_other(repo, worked, tmp_path, step):
    commit = repo.git("rev-parse", "HEAD")
    top = repo.root
    if step == "detached":
        repo.git("checkout", "-q", "--detach")
    else:
        top = tmp_path / "tree"
        repo.git("worktree", "add", "-q", "-b", "other", str(top))

    def work():
        (top / "new").write_text("x")
        repo.git("add", "-A", cwd=top)
        repo.git("commit", "-q", "-m", "work", cwd=top)

    started, completion = await worked(work, path=None if step == "detached" else str(top))
    assert started["snapshot_id"] == commit
    assert files(completion) == (["new"], [], [])


async def test_paths_are_relative_to_the_top_of_the_repository(repo, repo_at, tmp_path):
    below = repo_at(repo.root / "packages" / "one")
    below.write("a")
    repo.commit()
    async with below.tracker() as agent:
        _, _, task_id = await agent.running(areas=["packages/one"])
        below.write("a", "changed\n")
        repo.write("outside")
        completion = await agent.complete(task_id)
    assert files(completion) == (["outside"], ["packages/one/a"], [])
    assert completion["verification"]["unexpected_files"] == ["outside"]


@pytest.mark.parametrize("where", ["outside", "other_repository", "file", "missing"])
async def test_a_path_in_which_the_task_may_not_work_is_refused(repo, repo_at, tmp_path, where):
    path = tmp_path / where
    if where == "outside":
        path.mkdir()
    elif where == "other_repository":
        # It says that it is a worktree of the project, but the project does not know it.
        path.mkdir()
        (path / ".git").write_text(f"gitdir: {repo.root}/.git\n")
    elif where == "file":
        path = repo.write("file")
    else:
        path = repo.root / "missing"
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        place = {"workflow_id": workflow_id, "phase_id": await agent.phase(workflow_id)}
        who = {"caller_type": "orchestrator", "name": "t", "goal": "g"}
        error = await agent.error("start_task", **place, **who, path=str(path))
    assert error["code"] == "VALIDATION_ERROR"
    assert error["message"].startswith(f"path: {str(path)!r} ")
    assert error["suggestion"]


async def test_a_folder_that_the_repository_only_claims_as_its_worktree_is_refused(repo, repo_at, tmp_path):
    victim = repo_at(tmp_path / "victim").init()
    victim.commit()
    claim = repo.root / ".git" / "worktrees" / "victim"
    claim.mkdir(parents=True)
    (claim / "gitdir").write_text(f"{victim.root}/.git\n")
    (claim / "HEAD").write_text("ref: refs/heads/main\n")
    (claim / "commondir").write_text("../..\n")
    assert str(victim.root) in repo.git("worktree", "list")
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        place = {"workflow_id": workflow_id, "phase_id": await agent.phase(workflow_id)}
        who = {"caller_type": "orchestrator", "name": "t", "goal": "g"}
        error = await agent.error("start_task", **place, **who, path=str(victim.root))
    assert "lies outside of the project, its git worktrees" in error["message"]


async def test_a_start_commit_that_is_gone_is_said_and_the_rest_is_compared(repo, worked):
    def work():
        repo.write("committed")
        repo.git("checkout", "-q", "--orphan", "fresh")
        repo.commit()
        repo.git("branch", "-q", "-D", "main")
        repo.git("reflog", "expire", "--expire=now", "--all")
        repo.git("gc", "-q", "--prune=now")
        repo.write("uncommitted")

    started, completion = await worked(work)
    assert files(completion) == (["uncommitted"], [], [])
    assert started["snapshot_id"] in completion["verification"]["warnings"][0]


async def test_what_the_server_keeps_is_never_listed_and_other_files_of_its_folder_are(repo, worked):
    def work():
        for name in ("tmp/a", "data/a", "worktrees/a/b", "jobs/new/job.yml"):
            repo.write(f".deepwork/{name}")
        for folder in ("tmp", "data"):
            (repo.root / ".deepwork" / folder / ".gitignore").unlink(missing_ok=True)

    _, completion = await worked(work)
    assert files(completion) == ([".deepwork/jobs/new/job.yml"], [], [])


async def test_areas_that_do_not_match_are_a_warning(repo, worked):
    def work():
        repo.write("src/a.py")
        repo.write("docs/b.md")
        (repo.root / "README.md").unlink()

    _, completion = await worked(work, areas=["src"])
    assert completion["verification"] == {
        "scope_match": False,
        "unexpected_files": ["README.md", "docs/b.md"],
        "changed_before_start": [],
        "warnings": ["2 file(s) changed outside of the areas src"],
    }


async def test_a_submodule_is_listed_when_its_commit_changes(repo, repo_at, tmp_path, worked):
    module = repo_at(tmp_path / "module").init()
    module.commit()
    repo.git("submodule", "--quiet", "add", str(module.root), "module")
    repo.git("submodule", "--quiet", "add", str(module.root), "dirty_before")
    repo.commit()
    repo.git("commit", "-q", "--allow-empty", "-m", "x", cwd=repo.root / "dirty_before")

    def work():
        repo.git("commit", "-q", "--allow-empty", "-m", "x", cwd=repo.root / "module")

    _, completion = await worked(work)
    assert files(completion) == ([], ["module"], [])


async def test_a_repository_inside_is_left_out_with_a_warning(repo, repo_at, worked):
    def work():
        repo_at(repo.root / "inner").init().write("file")

    _, completion = await worked(work)
    assert files(completion) == ([], [], [])
    assert completion["verification"]["warnings"] == ["inner/ is a repository of its own, and its files are not listed"]


async def test_before_the_first_commit_contents_are_compared(folder):
    folder.init()
    folder.write(".gitignore", "ignored\n")
    folder.write("kept.bin", b"\0\xff")
    folder.write("changed")
    folder.write("gone")
    async with folder.tracker() as agent:
        workflow_id = await agent.workflow()
        started = await agent.start(workflow_id, await agent.phase(workflow_id))
        folder.write("changed", "changed\n")
        folder.write("new")
        folder.write("ignored")
        (folder.root / "gone").unlink()
        folder.commit()
        completion = await agent.complete(started["task_id"])
    assert started["snapshot_type"] == "checksum"
    assert started["snapshot_id"].startswith("checksum-")
    assert "warnings" not in started
    assert files(completion) == (["new"], ["changed"], ["gone"])


async def test_without_git_contents_are_compared_and_ignore_rules_hold(folder):
    folder.write(".gitignore", "*.log\n!keep.log\n/build/\n")
    folder.write("deep/.gitignore", "!a.log\nb.txt\n")
    folder.write("image.png", b"\x89PNG")
    async with folder.tracker() as agent:
        _, _, task_id = await agent.running()
        folder.write("image.png", b"\x89PNG2")
        (folder.root / "image.png").chmod(0o755)
        for name in ("a.log", "keep.log", "build/x", "deep/a.log", "deep/b.txt", "deep/c", "node_modules/x/y.js"):
            folder.write(name)
        completion = await agent.complete(task_id)
    assert files(completion) == (["deep/a.log", "deep/c", "keep.log"], ["image.png"], [])


async def test_a_broken_repository_lets_a_task_start_and_end_and_says_why(repo):
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        phase_id = await agent.phase(workflow_id)
        task_id = await agent.task(workflow_id, phase_id)
        (repo.root / ".git" / "config").write_text("[broken\n")
        started = await agent.start(workflow_id, phase_id)
        repo.write("new")
        compared = await agent.complete(started["task_id"])
        failed = await agent.complete(task_id)
    assert started["snapshot_type"] == "checksum"
    assert "git failed, so the contents of files are compared instead" in started["warnings"][0]
    assert files(compared) == (["new"], [], [])
    assert files(failed) == ([], [], [])
    assert failed["verification"]["warnings"][0].startswith("no files are listed, because git failed: ")


async def test_a_machine_without_git_lets_a_task_start_and_end(repo, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    async with repo.tracker() as agent:
        workflow_id = await agent.workflow()
        started = await agent.start(workflow_id, await agent.phase(workflow_id))
        repo.write("new")
        completion = await agent.complete(started["task_id"])
    assert "git is not installed" in started["warnings"][0]
    assert files(completion) == (["new"], [], [])


async def test_a_completion_on_another_machine_lists_no_files_and_names_both(shared):
    async with shared.tracker() as agent:
        _, _, task_id = await agent.running()
    shared.write("new")
    shared.write(".deepwork/config.yml", "plugins: {settings: {sql: {machine: elsewhere}}}\n")
    async with shared.tracker() as agent:
        completion = await agent.complete(task_id)
    assert files(completion) == ([], [], [])
    (warning,) = completion["verification"]["warnings"]
    assert "on machine 'elsewhere'" in warning
    assert f"the task began in {str(shared.root)!r} on machine" in warning


async def test_a_completion_in_another_clone_lists_no_files_and_names_both(shared, repo_at, tmp_path):
    async with shared.tracker() as agent:
        _, _, task_id = await agent.running()
    shared.git("clone", "-q", str(shared.root), str(tmp_path / "clone"))
    clone = repo_at(tmp_path / "clone")
    async with clone.tracker() as agent:
        completion = await agent.complete(task_id)
    (warning,) = completion["verification"]["warnings"]
    assert str(shared.root) in warning
    assert str(clone.root) in warning


async def test_a_repository_without_commits_whose_index_is_broken_lets_a_task_start(folder):
    folder.init().write("old")
    folder.git("add", "-A")
    (folder.root / ".git" / "index").write_bytes(b"broken")
    async with folder.tracker() as agent:
        workflow_id = await agent.workflow()
        started = await agent.start(workflow_id, await agent.phase(workflow_id))
    assert started["snapshot_type"] == "checksum"
    assert "git failed" in started["warnings"][0]


async def test_programs_that_a_repository_names_are_not_run(repo, worked):
    trap = repo.write("trap.sh", "#!/bin/sh\ntouch sprung\ncat\n")
    trap.chmod(trap.stat().st_mode | stat.S_IXUSR)
    repo.write(".gitattributes", "* filter=trap diff=trap\n")
    repo.commit()
    for key in ("core.fsmonitor", "core.hooksPath", "diff.external", "filter.trap.clean", "diff.trap.textconv"):
        repo.git("config", key, str(trap))
    repo.git("config", "diff.orderFile", "missing")
    started, _ = await worked(lambda: subprocess.run(["touch", "README.md"], cwd=repo.root, check=True))
    assert started["snapshot_type"] == "git"
    assert not (repo.root / "sprung").exists()


@pytest.fixture
def git_calls(monkeypatch, tmp_path):
    """Return what git was asked since the last look, by a program that stands before it."""
    log, program = tmp_path / "git-calls.log", shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{log}"\nexec "{program}" "$@"\n')
    fake.chmod(0o755)

    def calls():
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line.removeprefix("--no-pager --no-optional-locks ").split()[0] for line in lines]

    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    return calls


async def test_a_task_asks_git_few_questions_and_its_version_once_a_process(repo, git_calls):
    """Each is a process. The filters of the repository are looked up every time, because they are switched off."""
    repo.write("sub/a")
    repo.commit()
    async with repo.tracker() as agent:
        workflow_id, phase_id, task_id = await agent.running()
        first = git_calls()
        await agent.complete(task_id)
        completing = git_calls()
        await agent.task(workflow_id, phase_id, path="sub")
        starting = git_calls()
    assert first.count("version") == 1
    assert sorted(completing) == ["config", "diff", "ls-files", "rev-parse"]
    assert sorted(starting) == ["config", "diff", "ls-files", "rev-parse", "rev-parse"]
