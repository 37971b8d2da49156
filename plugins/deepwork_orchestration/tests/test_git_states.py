"""In any state of a repository, and for any calls of an agent: its user's part of it is the same afterwards.

Each sequence puts a repository into some states by plain git, and then calls the tools. The user's part is compared
from outside, byte for byte: references, logs, configuration, indexes, stashes, worktrees and files.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from deepwork.testing import Refused

pytestmark = pytest.mark.anyio

QUICK, ALL, CHUNK = 20, 520, 20
IDENTITY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "protocol.file.allow=always")


def git(folder, *arguments, check=True):
    completed = subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert not check or completed.returncode == 0, completed.stderr
    return completed.stdout


def commit(folder, name):
    (folder / name).write_text(f"{name}\n")
    git(folder, "add", "-f", name)
    git(folder, "commit", "-q", "-m", name)
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A repository with branches, tags, remote branches and notes, which each sequence copies."""
    folder = tmp_path_factory.mktemp("template")
    inner = folder / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    commit(inner, "inner.txt")
    root = folder / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("*.env\n.deepwork/\n")
    commit(root, ".gitignore")
    for name in ("feature", "topic/one"):
        git(root, "checkout", "-q", "-b", name)
        commit(root, f"{name.replace('/', '-')}.txt")
        git(root, "checkout", "-q", "main")
    commit(root, "shared.txt")
    git(root, "tag", "v1")
    git(root, "tag", "-a", "feature", "-m", "a tag with the name of a branch", "main")
    git(root, "update-ref", "refs/remotes/origin/there", "feature^{commit}")
    git(root, "notes", "add", "-m", "note")
    return folder


# What users do with their repositories.


def detached(root, outside):
    git(root, "checkout", "-q", "--detach", check=False)
    commit(root, "detached.txt")


def dirty(root, outside):
    (root / "shared.txt").write_text("dirty\n")
    (root / "untracked.txt").write_text("untracked\n")
    (root / "secret.env").write_text("ignored\n")


def staged(root, outside):
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")


def stashed(root, outside):
    (root / "shared.txt").write_text("stashed\n")
    git(root, "stash", "push", "-q", check=False)


def visited(root, outside):
    for name in ("feature", "topic/one", "main"):
        git(root, "checkout", "-q", name, "--", check=False)


def packed(root, outside):
    git(root, "pack-refs", "--all")


def assumed(root, outside):
    git(root, "update-index", "--assume-unchanged", "shared.txt", check=False)
    (root / "shared.txt").write_text("assumed\n")


def skipped(root, outside):
    git(root, "update-index", "--skip-worktree", "shared.txt", check=False)
    (root / "shared.txt").write_text("skipped\n")


def unborn(root, outside):
    git(root, "symbolic-ref", "HEAD", "refs/heads/unborn")


def merging(root, outside):
    git(root, "merge", "--no-commit", "--no-ff", "refs/heads/feature", check=False)


def bisecting(root, outside):
    git(root, "bisect", "start", check=False)


def linked(root, outside):
    git(root, "worktree", "add", "-q", "-B", "linked", str(outside / "linked"), check=False)


def linked_inside(root, outside):
    git(root, "worktree", "add", "-q", "--detach", str(root / "theirs"), "v1", check=False)
    (root / "theirs" / "draft.env").write_text("ignored\n")


def linked_detached(root, outside):
    git(root, "worktree", "add", "-q", "--detach", str(outside / "detached"), "v1", check=False)
    commit(outside / "detached", "only-here.txt")


def absent(root, outside):
    git(root, "worktree", "add", "-q", "--detach", str(outside / "drive" / "wt"), "v1", check=False)
    commit(outside / "drive" / "wt", "on-the-drive.txt")
    (outside / "drive").rename(outside / "unmounted")


def locked(root, outside):
    git(root, "worktree", "add", "-q", "--detach", str(outside / "locked"), "v1", check=False)
    git(root, "worktree", "lock", "--reason", "mine", str(outside / "locked"))


def submodule(root, outside):
    git(root, "submodule", "--quiet", "add", str(outside / "inner"), "inner", check=False)


def hiding(root, outside):
    for key, value in (("status.showUntrackedFiles", "no"), ("core.ignoreStat", "true"), ("gc.auto", "1")):
        git(root, "config", key, value)


def ignoring_case(root, outside):
    git(root, "config", "core.ignoreCase", "true")


def own_configuration(root, outside):
    git(root, "config", "extensions.worktreeConfig", "true")


def unlogged(root, outside):
    git(root, "config", "core.logAllRefUpdates", "false")


STATES = [
    *(detached, dirty, staged, stashed, visited, packed, assumed, skipped, unborn, merging, bisecting, linked),
    *(linked_inside, linked_detached, absent, locked, submodule, hiding, ignoring_case, own_configuration, unlogged),
]

# What is in order, and what is refused or stands in the way. Most calls have nothing of the second.
BRANCHES = (
    ["work", "work/two", "deepwork/a", "feature", "topic/one", "v1", "unborn"],
    ["Feature", "topic", "main", "linked", "@{-1}", "@{-2}", "@", "HEAD", "-", "a..b", ":/shared", "feature^0"],
)
BASES = (
    [None, "main", "feature", "topic/one", "origin/there", "v1"],
    ["refs/heads/main", "@{-1}", "HEAD", "HEAD~1", "HEAD^{/shared}", ":/shared", "--detach", "nowhere"],
)
PLACES = (
    [None, ".deepwork/worktrees/p", ".deepwork/worktrees/deep/p"],
    ["theirs", "theirs/inner", "src", ".git/hooks/x", ".git/refs/heads/evil", ".git/worktrees/x", ".claude", ".."],
)
MERGES = [None, None, None, "HEAD", "@{-1}", "main", 40 * "b"]


class User:
    """The user's part of a repository, seen from outside."""

    def __init__(self, root, outside):
        self.root, self.outside = root, outside
        self.own_branches = set()
        self.theirs = {path.name for path in self._kept()}
        self.objects = self._objects()

    def _kept(self):
        folder = self.root / ".git" / "worktrees"
        return [*folder.iterdir()] if folder.is_dir() else []

    def _objects(self):
        return {path for path in (self.root / ".git" / "objects").rglob("*") if path.is_file()}

    def _is_ours(self, path):
        parts = path.parts
        own = (Path(".git", *log, "refs", "heads", name) for name in self.own_branches for log in ((), ("logs",)))
        return (
            parts[:2] in ((".git", "objects"), (".deepwork", "worktrees"), (".deepwork", "tmp"))
            or (parts[:2] == (".git", "worktrees") and len(parts) > 2 and parts[2] not in self.theirs)
            or path in own
        )

    def look(self):
        """Return a digest of each file, and what git itself says of references and worktrees."""
        assert self.objects <= self._objects(), "an object was removed"
        digests = {}
        for top in (self.root, self.outside):
            for folder, _, names in os.walk(top):
                for name in names:
                    path = Path(folder, name)
                    if top == self.outside or not self._is_ours(path.relative_to(self.root)):
                        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                        digests[str(path)] = (path.lstat().st_mode, hashlib.sha256(content).hexdigest())
        refs = git(self.root, "for-each-ref", "--format=%(refname) %(objectname) %(symref)").splitlines()
        own = {f"refs/heads/{name}" for name in self.own_branches}
        digests["references"] = [line for line in refs if line.split()[0] not in own]
        digests["worktrees"] = [place for place in worktrees(self.root) if not is_below(place, self.root)]
        digests["stashes"] = git(self.root, "stash", "list", check=False)
        return digests


def worktrees(root):
    lines = git(root, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]


def is_below(place, root):
    return Path(place).is_relative_to(root / ".deepwork" / "worktrees")


def ours(root):
    """Return the worktrees below `.deepwork`, as git has noted them."""
    noted = (path.read_text().strip().removesuffix("/.git") for path in (root / ".git" / "worktrees").glob("*/gitdir"))
    return {place for place in noted if is_below(place, root)}


class Sequence:
    """Calls of one agent on one repository."""

    def __init__(self, rng, agent, root, outside, workflow_id, tasks):
        self.rng, self.agent, self.root, self.outside = rng, agent, root, outside
        self.workflow_id, self.tasks = workflow_id, tasks
        self.user = User(root, outside)
        self.before = self.user.look()
        self.workspaces = []
        self.work = []
        self.log = []

    async def call(self, tool, **arguments):
        """Call a tool. A call that is refused has changed nothing."""
        before = branches(self.root), ours(self.root)
        self.log.append((tool, arguments))
        try:
            reply = await self.agent.call(tool, **arguments)
        except Refused as error:
            reply, refusal = None, str(error)
        self.log.append(reply or refusal)
        if reply is None:
            assert "internal error" not in refusal, self.log
            assert (branches(self.root), ours(self.root)) == before, self.log
        return reply

    async def create(self):
        branch, base, place = (
            self.rng.choice(values if self.rng.random() < 0.85 else rare_values)
            for values, rare_values in (BRANCHES, BASES, PLACES)
        )
        existed = branch in branches(self.root)
        more = {"base_branch": base} if base else {}
        if place:
            more["path"] = f"{self.root}/{place}"
        reply = await self.call(
            "workspace_create", workflow_id=self.workflow_id, branch=branch, create_worktree=True, **more
        )
        if reply:
            assert is_below(reply["path"], self.root), self.log
            self.workspaces.append(reply["id"])
            if not existed:
                self.user.own_branches.add(branch)

    async def register(self):
        place = self.rng.choice([self.root, self.root / "theirs", *self.outside.iterdir(), *map(Path, ours(self.root))])
        reply = await self.call("workspace_create", workflow_id=self.workflow_id, branch="main", path=str(place))
        self.workspaces.append(reply["id"])

    async def clean(self):
        if not self.workspaces:
            return
        arguments = {"id": self.rng.choice(self.workspaces), "cleanup_worktree": True}
        status = self.rng.choice([None, None, "abandoned", "merged"])
        merge_commit = self.rng.choice([*MERGES, *[git(self.root, "rev-parse", "v1").strip()] * 3])
        before = ours(self.root)
        reply = await self.call(
            "workspace_update",
            **arguments,
            **({"status": status} if status else {}),
            **({"merge_commit": merge_commit} if merge_commit else {}),
        )
        if reply:
            assert len(before) - len(ours(self.root)) == bool(reply.get("removed")), self.log

    async def claim(self):
        task = self.rng.choice([*self.tasks.values()])
        worker = await self.agent.worker()
        reply = await self.call("task_claim", task_id=task, agent_id=worker)
        if reply.get("workspace_id"):
            self.workspaces.append(reply["workspace_id"])
            self.user.own_branches.add(f"deepwork/{self.workflow_id}/{task}")
        if reply["success"]:
            await self.agent.call("task_release", task_id=task, agent_id=worker)

    async def labour(self):
        """Leave work in a worktree of ours: none of it may ever be lost."""
        if not ours(self.root):
            return
        place = Path(self.rng.choice(sorted(ours(self.root))))
        name = f"work-{len(self.work)}"
        kind = self.rng.choice(["untracked", "ignored", "committed", "detached"])
        if kind in ("untracked", "ignored"):
            name += ".env" if kind == "ignored" else ".txt"
            (place / name).write_text("work\n")
            self.work.append(name)
            return
        if git(place, "status", "--porcelain", "--untracked-files=no") or not (place / ".git").is_file():
            return
        branch = git(place, "branch", "--show-current").strip()
        if kind == "detached" or branch not in self.user.own_branches:
            git(place, "checkout", "-q", "--detach")
        self.work.append(commit(place, name))

    def check(self):
        assert self.user.look() == self.before, self.log
        files = {path.name for path in (self.root / ".deepwork" / "worktrees").rglob("work-*")}
        heads = [git(place, "rev-parse", "HEAD").strip() for place in ours(self.root)]
        for work in self.work:
            if work.startswith("work-"):
                assert work in files, (work, self.log)
            else:
                held = git(self.root, "for-each-ref", "--contains", work).strip()
                held = held or any(work in git(self.root, "rev-list", head) for head in heads)
                logs = (path.read_text() for path in (self.root / ".git" / "worktrees").rglob("logs/HEAD"))
                assert held or any(work in log for log in logs), (work, self.log)


def branches(root):
    return git(root, "for-each-ref", "--format=%(refname:strip=2)", "refs/heads").splitlines()


def renew(root, outside, template):
    """Put a new copy of the repository in place of the last one; what the server keeps stays."""
    for folder, keeps in ((root, ".deepwork"), (outside, None)):
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if path.name != keeps:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.rmtree(root / ".deepwork" / "worktrees", ignore_errors=True)
    shutil.copytree(template / "repository", root, dirs_exist_ok=True)
    shutil.copytree(template / "inner", outside / "inner")


async def play(seed, agent, root, outside, template, make_task):
    rng = random.Random(seed)
    renew(root, outside, template)
    states = rng.sample(STATES, rng.randint(1, 4))
    for state in states:
        state(root, outside)
    workflow_id, tasks = await agent.workflow(make_task("a", parallel_group="g"), auto_create_workspaces=True)
    sequence = Sequence(rng, agent, root, outside, workflow_id, tasks)
    sequence.log.append((seed, [state.__name__ for state in states]))
    actions = rng.choices(
        [sequence.create, sequence.clean, sequence.labour, sequence.register, sequence.claim],
        [3, 4, 4, 1, 1],
        k=rng.randint(4, 6),
    )
    for action in [sequence.create, *actions]:
        await action()
    sequence.check()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "first",
    [
        *(pytest.param(first) for first in range(0, QUICK, CHUNK)),
        *(pytest.param(first, marks=pytest.mark.slow) for first in range(QUICK, ALL, CHUNK)),
    ],
)
async def test_the_users_part_of_a_repository_is_the_same_after_any_calls(
    project_on_database, team_at, tmp_path, template, make_task, first
):
    root, outside = project_on_database.root, tmp_path / "outside"
    async with AsyncExitStack() as stack:
        agent = await team_at(root, stack).agent()
        for seed in range(first, first + CHUNK):
            await play(seed, agent, root, outside, template, make_task)
