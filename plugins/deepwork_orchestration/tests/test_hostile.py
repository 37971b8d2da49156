"""Worktrees where the repository, or who names a folder, wants git to run a program or to write elsewhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deepwork.testing import Refused

pytestmark = [
    pytest.mark.anyio,
    # What git does is the same in any store of plans.
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]

SETTINGS = ("filter.f.clean", "filter.f.smudge", "filter.f.process", "core.fsmonitor", "diff.external")


@pytest.fixture
def program(tmp_path):
    """A program that leaves a file behind: `fired()` says whether it ran."""
    path = tmp_path / "canary.sh"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary-$$\ncat\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def fired(tmp_path):
    return lambda: [*tmp_path.glob("canary-*")]


@pytest.fixture
async def repository(team):
    team.repository()
    return team.project.root


def arm(team, program, folder, *where):
    """Let the configuration of a repository name programs for each of its files."""
    for name in SETTINGS:
        team.git("config", *where, name, str(program), cwd=folder)
    attributes = team.git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=folder).strip()
    with open(f"{attributes}/info/attributes", "w") as file:
        file.write("* filter=f diff=f\n")


async def made(agent, **more):
    """Make a worktree, and give the workspace."""
    workflow_id, _ = await agent.workflow()
    return await agent.call("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True, **more)


async def cleaned(agent, workspace_id):
    """Have the folder of a workspace removed, and give the error if there is one."""
    try:
        await agent.call("workspace_update", id=workspace_id, status="abandoned", cleanup_worktree=True)
    except Refused as error:
        return json.loads(str(error))
    return None


async def test_a_folder_that_is_no_worktree_of_the_repository_is_not_looked_into(
    team, agent, repository, program, fired
):
    """A workspace may be registered with any path. A repository of its own there has its own configuration."""
    nested = repository / "nested"
    nested.mkdir()
    team.git("init", "-q", cwd=nested)
    (nested / "file").write_text("one\n")
    team.git("add", "-A", cwd=nested)
    team.git("commit", "-q", "-m", "x", cwd=nested)
    arm(team, program, nested)
    (nested / "file").write_text("two\n")
    workflow_id, _ = await agent.workflow()
    workspace = await agent.call("workspace_create", workflow_id=workflow_id, path=str(nested), branch="b")
    error = await cleaned(agent, workspace["id"])
    assert error["code"] == "INVALID_STATE"
    assert (nested / "file").read_text() == "two\n"
    assert fired() == []


@pytest.mark.parametrize("is_dirty", [False, True])
async def test_a_worktree_with_a_configuration_of_its_own_runs_nothing_when_it_is_removed(
    team, agent, repository, program, fired, is_dirty
):
    workspace = await made(agent)
    place = repository / ".deepwork" / "worktrees" / "b"
    team.git("config", "extensions.worktreeConfig", "true")
    arm(team, program, place, "--worktree")
    if is_dirty:
        (place / "README.md").write_text("changed\n")
    os.utime(place / "README.md", (1, 1))
    reply = await agent.call("workspace_update", id=workspace["id"], cleanup_worktree=True)
    assert ("moved_to" in reply, place.exists()) == (is_dirty, False)
    assert fired() == []


async def test_a_worktree_of_a_repository_that_names_programs_is_made_and_removed_without_them(
    team, agent, repository, program, fired
):
    arm(team, program, repository)
    hooks = repository / ".git" / "hooks"
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(program)
    workspace = await made(agent)
    assert await cleaned(agent, workspace["id"]) is None
    assert fired() == []


async def test_a_submodule_in_a_worktree_is_not_looked_into(team, agent, repository, program, fired, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    team.git("init", "-q", cwd=inner)
    (inner / "file").write_text("one\n")
    team.git("add", "-A", cwd=inner)
    team.git("commit", "-q", "-m", "x", cwd=inner)
    team.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    team.git("commit", "-q", "-m", "submodule")
    workspace = await made(agent)
    place = repository / ".deepwork" / "worktrees" / "b"
    team.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", cwd=place)
    arm(team, program, place / "inner")
    (place / "inner" / "file").write_text("two\n")
    reply = await agent.call("workspace_update", id=workspace["id"], cleanup_worktree=True)
    moved = Path(reply["moved_to"])
    assert (moved / "inner" / "file").read_text() == "two\n"
    assert fired() == []
    assert team.git("rev-parse", "--show-toplevel", cwd=moved / "inner").strip() == str(moved / "inner")


@pytest.mark.parametrize("link", ["worktrees", "worktrees/.gitignore", "worktrees/b"])
async def test_no_link_of_the_repository_leads_what_is_written_elsewhere(team, agent, repository, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    place = repository / ".deepwork" / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside / "new" if link.endswith("ignore") else outside)
    workflow_id, _ = await agent.workflow()
    message = ""
    try:
        await agent.call("workspace_create", workflow_id=workflow_id, branch="b", create_worktree=True)
    except Refused as error:
        message = str(error)
    assert "internal error" not in message
    assert [*outside.iterdir()] == []


@pytest.mark.parametrize("path", ["{root}", "{root}/.git", "{root}/.git/hooks", "{root}/.deepwork", "{root}/src"])
async def test_only_a_worktree_is_ever_removed(team, agent, repository, path):
    place = path.format(root=repository)
    team.project.write("src/kept.py")
    team.project.write(".deepwork/kept.yml")
    workflow_id, _ = await agent.workflow()
    workspace = await agent.call("workspace_create", workflow_id=workflow_id, path=place, branch="b")
    before = sorted(str(path_below) for path_below in repository.rglob("*") if "/data/" not in str(path_below))
    error = await cleaned(agent, workspace["id"])
    assert error["code"] == "INVALID_STATE"
    assert sorted(str(path_below) for path_below in repository.rglob("*") if "/data/" not in str(path_below)) == before
