"""What users have in their repositories stays: no call removes anything that this plugin has not made."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from click.testing import CliRunner

from deepwork_orchestration import cli

pytestmark = [
    pytest.mark.anyio,
    # What git does is the same in any store of plans.
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]


@pytest.fixture
async def repository(team):
    team.repository()
    return team.project.root


@pytest.fixture
async def make_worktree(agent):
    """Make a worktree of the plugin's own, and return its workspace and its folder."""

    async def make(branch="b", **more):
        workflow_id, _ = await agent.workflow()
        reply = await agent.call(
            "workspace_create", workflow_id=workflow_id, branch=branch, create_worktree=True, **more
        )
        return reply["id"], Path(reply["path"])

    return make


def commit(team, folder, name="new"):
    (folder / name).write_text("work\n")
    team.git("add", "-f", name, cwd=folder)
    team.git("commit", "-q", "-m", name, cwd=folder)
    return team.git("rev-parse", "HEAD", cwd=folder).strip()


def refs(team):
    return team.git("for-each-ref")


def listed(team):
    return team.git("worktree", "list", "--porcelain")


async def cleanup(agent, workspace_id, **more):
    return await agent.call("workspace_update", id=workspace_id, cleanup_worktree=True, **more)


# Branches.


async def test_the_branch_that_was_checked_out_before_is_never_touched(team, agent, repository):
    """`@{-1}` is expanded by git; the call once deleted that branch with its commits."""
    for name in ("feature-one", "feature-two"):
        team.git("checkout", "-q", "-b", name)
        commit(team, repository, name)
    team.git("checkout", "-q", "main")
    before = refs(team)
    workflow_id, _ = await agent.workflow()
    for branch in ("@{-1}", "@{-2}"):
        refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch=branch, create_worktree=True)
        assert refusal["code"] == "INVALID_INPUT"
    assert refs(team) == before


async def test_an_attempt_on_a_branch_that_exists_leaves_the_branch(team, agent, repository):
    team.git("branch", "theirs")
    before = refs(team)
    workflow_id, _ = await agent.workflow()
    team.project.write(".deepwork/worktrees/theirs/in-the-way")
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch="theirs", create_worktree=True)
    assert "exists already" in refusal["message"]
    assert refs(team) == before


async def test_two_calls_at_once_on_one_branch_name_make_one_worktree(team, agent, repository):
    """The refused call takes nothing away from the other."""
    import anyio

    workflow_id, _ = await agent.workflow()
    replies = []

    async def call(number):
        arguments = {"path": str(repository / ".deepwork" / "worktrees" / f"w{number}"), "branch": "b"}
        result = await agent.client.call_tool(
            "workspace_create",
            {"workflow_id": workflow_id, "create_worktree": True, **arguments},
            raise_on_error=False,
        )
        replies.append(result.is_error)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(call, number)
    assert sorted(replies) == [False, True, True]
    assert listed(team).count("branch refs/heads/b") == 1
    assert len((await agent.call("workspace_list", workflow_id=workflow_id))["workspaces"]) == 1


async def test_a_branch_that_moved_meanwhile_is_left_and_the_reply_says_so(team, agent, repository, monkeypatch):
    from deepwork_orchestration import worktrees

    async def fail(git, path, workspace_id):
        commit(team, path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worktrees, "_mark", fail)
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    assert "No space left" in refusal["message"]
    assert refusal["suggestion"] == "This was made and is left: the branch 'b'."
    assert "new" in team.git("log", "--format=%s", "b")


async def test_a_name_that_differs_in_case_only_is_refused_where_the_file_system_cannot_tell(team, agent, repository):
    team.git("branch", "Feature")
    team.git("config", "core.ignoreCase", "true")
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch="feature", create_worktree=True)
    assert (refusal["code"], "'Feature'" in refusal["message"]) == ("INVALID_INPUT", True)


async def test_a_base_is_a_branch_a_tag_or_a_whole_commit_id(team, agent, repository):
    first = team.git("rev-parse", "HEAD").strip()
    team.git("update-ref", "refs/remotes/origin/there", "HEAD")
    team.git("tag", "-a", "v1", "-m", "one")
    commit(team, repository)
    workflow_id, _ = await agent.workflow()
    for number, base in enumerate(("origin/there", "v1", first)):
        branch = f"b{number}"
        await agent.call(
            "workspace_create", workflow_id=workflow_id, branch=branch, base_branch=base, create_worktree=True
        )
        assert team.git("rev-parse", branch).strip() == first
    assert "[branch" not in (repository / ".git" / "config").read_text()


async def test_a_repository_without_a_commit_has_nothing_to_make_a_worktree_of(team, agent):
    team.git("init", "-q", "-b", "main")
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    assert (refusal["code"], "no commit yet" in refusal["message"]) == ("INVALID_STATE", True)


async def test_a_branch_that_is_checked_out_and_has_no_commit_yet_is_not_made(team, agent, repository):
    """Its first commit is the user's; a branch made below it would turn their index into a change of all files."""
    team.git("checkout", "-q", "--orphan", "fresh")
    before = (repository / ".git" / "logs" / "HEAD").read_bytes(), refs(team)
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal(
        "workspace_create", workflow_id=workflow_id, branch="fresh", base_branch="main", create_worktree=True
    )
    assert "has no commit yet" in refusal["message"]
    assert ((repository / ".git" / "logs" / "HEAD").read_bytes(), refs(team)) == before


# Worktrees of users.


async def test_nothing_is_pruned(team, agent, repository, tmp_path):
    """A worktree on a drive that is not mounted keeps its index and its detached commit."""
    drive = tmp_path / "drive"
    team.git("worktree", "add", "-q", "--detach", str(drive / "wt"))
    theirs = commit(team, drive / "wt")
    drive.rename(tmp_path / "unmounted")
    workflow_id, _ = await agent.workflow()
    created = await agent.call("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    await cleanup(agent, created["id"])
    registered = await agent.call(
        "workspace_create", workflow_id=workflow_id, branch="x", path=str(repository / "gone")
    )
    await cleanup(agent, registered["id"])
    (tmp_path / "unmounted").rename(drive)
    assert team.git("rev-parse", "HEAD", cwd=drive / "wt").strip() == theirs


async def test_a_worktree_of_the_user_is_never_removed(team, agent, repository):
    """Not even a clean one, and wherever it lies in the project."""
    place = repository / "theirs"
    team.git("worktree", "add", "-q", "-b", "theirs", str(place))
    workflow_id, _ = await agent.workflow()
    workspace = await agent.call("workspace_create", workflow_id=workflow_id, path=str(place), branch="theirs")
    before = listed(team)
    refusal = await agent.refusal("workspace_update", id=workspace["id"], status="abandoned", cleanup_worktree=True)
    assert (refusal["code"], "was not made by this plugin" in refusal["message"]) == ("INVALID_STATE", True)
    assert (listed(team), (place / "README.md").exists()) == (before, True)


async def test_a_worktree_without_a_mark_is_only_moved_aside(team, agent, repository):
    """Those that earlier releases have made have none."""
    place = repository / ".deepwork" / "worktrees" / "old"
    team.git("worktree", "add", "-q", "-b", "old", str(place))
    workflow_id, _ = await agent.workflow()
    workspace = await agent.call("workspace_create", workflow_id=workflow_id, path=str(place), branch="old")
    reply = await cleanup(agent, workspace["id"])
    moved = Path(reply["moved_to"])
    assert moved.parent == repository / ".deepwork" / "worktrees" / ".removed"
    assert team.git("status", "--porcelain", "--branch", cwd=moved).strip() == "## old"


async def test_only_its_own_workspace_removes_a_worktree(team, agent, make_worktree, repository):
    _, place = await make_worktree()
    workflow_id, _ = await agent.workflow()
    another = await agent.call("workspace_create", workflow_id=workflow_id, path=str(place), branch="b")
    refusal = await agent.refusal("workspace_update", id=another["id"], cleanup_worktree=True)
    assert "was made for another workspace" in refusal["message"]
    assert place.exists()


async def test_a_locked_worktree_stays(team, agent, make_worktree, repository):
    workspace_id, place = await make_worktree()
    team.git("worktree", "lock", "--reason", "on a stick", str(place))
    refusal = await agent.refusal("workspace_update", id=workspace_id, cleanup_worktree=True)
    assert "on a stick" in refusal["message"]
    assert place.exists()


# What would be lost.


def ignored(team, place):
    (place / "prod.env").write_text("key\n")


def hidden_untracked(team, place):
    team.git("config", "status.showUntrackedFiles", "no")
    (place / "draft").write_text("text\n")


def untracked_twin(team, place):
    team.git("config", "core.ignoreCase", "true")
    (place / "readme.md").write_text("another\n")


def detached(team, place):
    team.git("checkout", "-q", "--detach", cwd=place)
    commit(team, place)


def detached_before(team, place):
    detached(team, place)
    team.git("checkout", "-q", "b", cwd=place)


def assumed(team, place):
    team.git("update-index", "--assume-unchanged", "README.md", cwd=place)
    (place / "README.md").write_text("changed\n")


def skipped(team, place):
    team.git("update-index", "--skip-worktree", "README.md", cwd=place)
    (place / "README.md").write_text("changed\n")


def nested_ignored(team, place):
    (place / "vendor").mkdir()
    team.git("init", "-q", cwd=place / "vendor")
    (place / "vendor" / ".gitignore").write_text("*\n")


def nested_in_a_tracked_folder(team, place):
    """`git status` shows nothing of it."""
    (place / "sub").mkdir()
    commit(team, place, "sub/tracked")
    team.git("init", "-q", cwd=place / "sub")


def staged(team, place):
    (place / "README.md").write_text("staged\n")
    team.git("add", "README.md", cwd=place)


def merging(team, place):
    head = team.git("rev-parse", "HEAD", cwd=place)
    (Path(team.git("rev-parse", "--absolute-git-dir", cwd=place).strip()) / "MERGE_HEAD").write_text(head)


def rebasing(team, place):
    (Path(team.git("rev-parse", "--absolute-git-dir", cwd=place).strip()) / "rebase-merge").mkdir()


def own_reference(team, place):
    team.git("update-ref", "refs/worktree/mine", "HEAD", cwd=place)


LOSSES = [
    *(ignored, hidden_untracked, untracked_twin, detached, detached_before, assumed, skipped, nested_ignored),
    *(nested_in_a_tracked_folder, staged, merging, rebasing, own_reference),
]


@pytest.mark.parametrize("change", LOSSES, ids=lambda change: change.__name__)
async def test_what_would_be_lost_is_moved_aside_and_stays_a_worktree(team, agent, make_worktree, repository, change):
    (repository / ".git" / "info" / "exclude").write_text("prod.env\nvendor\n")
    workspace_id, place = await make_worktree()
    change(team, place)
    head = team.git("rev-parse", "HEAD", cwd=place)
    before = names_below(place)
    reply = await cleanup(agent, workspace_id, status="abandoned")
    moved = Path(reply["moved_to"])
    assert reply["reasons"]
    assert not place.exists()
    assert names_below(moved) == before
    assert team.git("rev-parse", "HEAD", cwd=moved) == head
    (workspace,) = (await agent.call("workspace_list", workflow_id=await workflow_of(agent)))["workspaces"]
    assert workspace["status"] == "abandoned"
    # The place is free for a worktree of another branch.
    await make_worktree("another", path=str(place))


def names_below(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


async def workflow_of(agent):
    return (await agent.call("workflow_list"))["workflows"][0]["id"]


async def test_a_sparse_checkout_and_a_merged_branch_lose_nothing(team, agent, make_worktree, repository):
    commit(team, repository, "left-out")
    workspace_id, place = await make_worktree()
    team.git("sparse-checkout", "set", "--no-cone", "README.md", cwd=place)
    assert not (place / "left-out").exists()
    team.git("commit", "-q", "--allow-empty", "-m", "done", cwd=place)
    team.git("merge", "-q", "--ff-only", "b")
    tip = team.git("rev-parse", "b").strip()
    assert await cleanup(agent, workspace_id, status="merged", merge_commit=tip) == {"success": True, "removed": True}


async def test_a_commit_that_a_branch_holds_is_not_lost_when_head_is_detached(team, agent, make_worktree, repository):
    workspace_id, place = await make_worktree()
    detached(team, place)
    team.git("branch", "kept", "HEAD", cwd=place)
    assert (await cleanup(agent, workspace_id))["removed"] is True


@pytest.mark.parametrize("merge_commit", [None, "HEAD", "main", 40 * "b", "@{-1}"])
async def test_without_the_commit_of_the_merge_no_folder_is_removed(
    team, agent, make_worktree, repository, merge_commit
):
    workspace_id, place = await make_worktree()
    arguments = {} if merge_commit is None else {"merge_commit": merge_commit}
    refusal = await agent.refusal(
        "workspace_update", id=workspace_id, status="merged", cleanup_worktree=True, **arguments
    )
    assert refusal["code"] == ("MISSING_MERGE_COMMIT" if merge_commit is None else "INVALID_INPUT")
    assert place.exists()


async def test_a_claim_makes_its_worktree_anew_when_its_folder_was_deleted(team, agent, repository, make_task):
    """git forgets the old one then, and no other worktree."""
    _, tasks = await agent.workflow(make_task("a", parallel_group="g"), auto_create_workspaces=True)
    worker = await agent.worker()
    claim = await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    shutil.rmtree(claim["path"])
    await agent.call("task_release", task_id=tasks["a"], agent_id=worker)
    again = await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    assert again["path"] == claim["path"]
    assert again["path"] in listed(team)


# Places.


@pytest.mark.parametrize(
    "path",
    [
        *(".git/hooks", ".git/refs/heads/evil", ".git/worktrees/x", ".claude", ".vscode", ".github/workflows", "src"),
        *(".deepwork/jobs/x", ".deepwork/tmp", ".deepwork/data", "node_modules/.bin", ".deepwork/worktrees"),
        *(".deepwork/worktrees/.removed/x", ".deepwork/worktrees/.hidden", ".deepwork/worktrees/a/.git/hooks"),
        *(".deepwork/worktrees/../jobs/x", "../outside"),
    ],
)
async def test_a_worktree_lies_nowhere_else_in_the_project(team, agent, repository, path):
    shutil.rmtree(repository / ".git" / "hooks")
    workflow_id, _ = await agent.workflow()
    before = refs(team), listed(team)
    refusal = await agent.refusal(
        "workspace_create", workflow_id=workflow_id, branch="b", path=f"{repository}/{path}", create_worktree=True
    )
    assert refusal["code"] == "INVALID_INPUT"
    assert (refs(team), listed(team)) == before
    assert not (repository / path).exists() or path == ".deepwork/data"


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [("wt", True), ("deep/wt", True), ("", False), (".ssh", False), ("bare.git/hooks", False), ("project/src", False)],
)
async def test_folders_that_the_user_allows_take_worktrees(team, repository, tmp_path, monkeypatch, path, is_allowed):
    team.git("init", "-q", "--bare", str(tmp_path / "bare.git"))
    shutil.rmtree(tmp_path / "bare.git" / "hooks")
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", str(tmp_path))
    agent = await team.agent()
    workflow_id, _ = await agent.workflow()
    call = agent.call if is_allowed else agent.refusal
    reply = await call(
        "workspace_create", workflow_id=workflow_id, branch="b", path=str(tmp_path / path), create_worktree=True
    )
    assert reply.get("code") == (None if is_allowed else "INVALID_INPUT")
    if is_allowed:
        assert (await cleanup(agent, reply["id"]))["removed"] is True


# What was moved aside.


@pytest.fixture
async def moved(team, agent, make_worktree, repository):
    workspace_id, place = await make_worktree()
    (place / "draft").write_text("text\n")
    return Path((await cleanup(agent, workspace_id))["moved_to"])


def plan_clean(team, *arguments, stdin=""):
    """Run the command in this process; a process adds nothing."""
    return CliRunner().invoke(cli.plan, ["clean", *arguments, "--path", str(team.project.root)], input=stdin)


async def test_doctor_lists_what_was_moved_aside(team, moved):
    command = [sys.executable, "-m", "deepwork", "doctor", "--path", str(team.project.root)]
    doctor = (await anyio.run_process(command, check=False)).stdout.decode()
    assert moved.name in doctor
    assert "deepwork plan clean --removed" in doctor


async def test_people_remove_it_for_good_after_they_were_asked(team, moved, monkeypatch):
    def run(*arguments, stdin=""):
        return to_thread.run_sync(lambda: plan_clean(team, *arguments, stdin=stdin))

    assert (await run()).exit_code == 2
    assert "not a terminal" in str((await run("--removed")).exception)
    monkeypatch.setattr(cli, "_is_terminal", lambda: True)
    refused = await run("--removed", stdin="n\n")
    assert "draft" in refused.output
    assert moved.exists()
    assert "removed" in (await run("--removed", stdin="y\n")).output
    assert (moved.exists(), str(moved) in listed(team)) == (False, False)


async def test_a_folder_that_is_not_a_worktree_is_left(team, moved):
    (moved.parent / "notes").mkdir()
    result = await to_thread.run_sync(lambda: plan_clean(team, "--removed", "--yes"))
    assert "remove it by hand" in result.output
    assert ((moved.parent / "notes").exists(), moved.exists()) == (True, False)
