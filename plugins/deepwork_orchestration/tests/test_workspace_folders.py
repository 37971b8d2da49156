"""Workspaces with worktrees: made, removed, and brought by a claim."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def repository(team):
    team.repository()
    return team.project.root


def worktrees(team):
    lines = team.git("worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


def branches(team):
    return team.git("branch", "--format=%(refname:short)").split()


async def test_a_worktree_is_made_and_removed(team, agent, repository):
    workflow_id, _ = await agent.workflow()
    created = await agent.call(
        "workspace_create", workflow_id=workflow_id, branch="feature/x", create_worktree=True, request_id="r"
    )
    again = await agent.call(
        "workspace_create", workflow_id=workflow_id, branch="feature/x", create_worktree=True, request_id="r"
    )
    assert again["id"] == created["id"]
    place = repository / ".deepwork" / "worktrees" / "feature-x"
    assert created["path"] == str(place)
    assert worktrees(team) == [str(place)]
    assert "worktrees" not in team.git("status", "--porcelain")
    cleaned = await agent.call("workspace_update", id=created["id"], status="abandoned", cleanup_worktree=True)
    assert cleaned == {"success": True, "removed": True}
    assert (worktrees(team), place.exists(), branches(team)) == ([], False, ["feature/x", "main"])
    cleaned = await agent.call("workspace_update", id=created["id"], cleanup_worktree=True)
    assert cleaned == {"success": True, "removed": False}


NOT_LITERAL = [
    "@{-1}",
    "@{-2}",
    "@{u}",
    "@{upstream}",
    "@",
    "HEAD",
    "a@{1}",
    ":/first",
    "a^{/first}",
    "main~0",
    "main^0",
]


@pytest.mark.parametrize("branch", ["-b", "a..b", "a.lock", "a b", "@{", "--orphan", "-", *NOT_LITERAL])
async def test_a_name_that_is_not_a_branch_is_refused(team, agent, repository, branch):
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch=branch, create_worktree=True)
    assert (refusal["code"], refusal["message"].startswith("branch")) == ("INVALID_INPUT", True)
    assert (worktrees(team), branches(team)) == ([], ["main"])


async def test_nothing_is_left_of_an_attempt_that_fails(team, agent, repository, make_task):
    workflow_id, _ = await agent.workflow()
    _, foreign_tasks = await agent.workflow(make_task("a"))
    for arguments, code in (
        ({"base_branch": "nowhere"}, "INVALID_INPUT"),
        ({"base_branch": "--force"}, "INVALID_INPUT"),
        *(({"base_branch": name}, "INVALID_INPUT") for name in NOT_LITERAL),
        ({"base_branch": team.git("rev-parse", "HEAD")[:12]}, "INVALID_INPUT"),
        ({"base_branch": 40 * "a"}, "INVALID_INPUT"),
        ({"path": "/tmp/outside"}, "INVALID_INPUT"),
        ({"path": "relative"}, "INVALID_INPUT"),
        ({"path": str(repository / "README.md")}, "INVALID_INPUT"),
        ({"task_ids": [foreign_tasks["a"]]}, "WORKFLOW_MISMATCH"),
    ):
        refusal = await agent.refusal(
            "workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True, **arguments
        )
        assert refusal["code"] == code, arguments
        assert (worktrees(team), branches(team)) == ([], ["main"])
    assert (repository / "README.md").read_text() == "content\n"


async def test_a_database_that_fails_after_git_takes_the_worktree_back(team, agent, repository, monkeypatch):
    workflow_id, _ = await agent.workflow()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("deepwork_orchestration.workspaces.create", fail)
    await agent.refused("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    assert (worktrees(team), branches(team)) == ([], ["main"])


async def test_outside_of_a_repository_no_worktree_is_made(team, agent):
    workflow_id, _ = await agent.workflow()
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    assert refusal["code"] == "MISSING_REPO_PATH"


async def test_a_claim_brings_a_worktree_which_the_next_holder_takes_over(team, agent, repository, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("a", parallel_group="g"), make_task("b"), auto_create_workspaces=True
    )
    worker, next_holder = await agent.worker(), await agent.worker()
    claim = await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    assert claim["path"] == str(repository / ".deepwork" / "worktrees" / tasks["a"])
    assert branches(team) == [f"deepwork/{workflow_id}/{tasks['a']}", "main"]
    assert (await agent.call("task_get", id=tasks["a"]))["workspace_id"] == claim["workspace_id"]
    await agent.call("task_release", task_id=tasks["a"], agent_id=worker)
    again = await agent.call("task_claim", task_id=tasks["a"], agent_id=next_holder)
    assert (again["workspace_id"], again["path"]) == (claim["workspace_id"], claim["path"])
    plain = await agent.call("task_claim", task_id=tasks["b"], agent_id=next_holder)
    assert plain.keys() == {"success", "fence", "lease_expires_at"}
    assert len((await agent.call("workspace_list", workflow_id=workflow_id))["workspaces"]) == 1


async def test_the_claim_stands_if_git_fails_and_the_reply_says_why(team, agent, repository, make_task):
    _, tasks = await agent.workflow(make_task("a", parallel_group="g"), auto_create_workspaces=True)
    worker = await agent.worker()
    team.project.write(f".deepwork/worktrees/{tasks['a']}/in-the-way")
    claim = await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    assert claim["success"] is True
    assert "exists already" in claim["workspace_error"]
    assert branches(team) == ["main"]
    assert (await agent.call("task_get", id=tasks["a"]))["assigned_agent_id"] == worker


async def test_a_server_without_the_repository_makes_no_worktree(agent, make_task):
    _, tasks = await agent.workflow(
        make_task("a", parallel_group="g"), auto_create_workspaces=True, repository_path="/other/machine"
    )
    claim = await agent.call("task_claim", task_id=tasks["a"], agent_id=await agent.worker())
    assert claim.keys() == {"success", "fence", "lease_expires_at"}


async def test_large_files_stay_pointers_and_the_reply_says_so(team, agent, repository):
    team.project.write(".gitattributes", "*.bin filter=lfs\n")
    team.project.write("big.bin", "version https://git-lfs.github.com/spec/v1\n")
    team.git("add", "-A")
    team.git("commit", "-q", "-m", "large")
    workflow_id, _ = await agent.workflow()
    created = await agent.call("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    assert "pointers" in created["warnings"][0]
