"""Worktrees of git for tasks: made, removed, and moved aside if something in them would be lost.

Only what this plugin has made is ever removed: what git keeps of the worktree has a mark with the id of the workspace,
and the row of that workspace names the same place. Nothing is pruned. A branch is deleted only if the same call has
made it, and only at the commit that it was made at.

Git runs with all filters off, so files that lie elsewhere (Git LFS) stay pointers.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from anyio import CancelScope, to_thread

from deepwork.api import Folder, Git
from deepwork.errors import DeepWorkError, GitError
from deepwork_orchestration import git_names, losses, worktree_entries
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.worktree_entries import Entry, exists

# Out of git's sight, by a .gitignore of its own.
FOLDER = Path(".deepwork") / "worktrees"
# Below it: worktrees that were removed, although something of them is nowhere else.
REMOVED = ".removed"
_LOCK = ".lock"
# A call waits so long while another call makes or removes a worktree of the project.
_LOCK_SECONDS = 60.0
# git writes this into the lock of a worktree while it makes it.
_BEING_MADE = "initializing"


class Place(NamedTuple):
    """Where a worktree may be made: a folder that does not exist yet, and the folder of the user's in which it lies."""

    path: Path
    root: Path


class Worktree(NamedTuple):
    """A worktree that a call has made, or has begun to make.

    Attributes:
        path: Where it is.
        branch: The branch that is checked out in it.
        made_at: The commit at which the call has made the branch; None if the branch was there before.
        made_folders: The folders that the call has made above it, the outermost first.
        has_pointers: Whether it has files that only a filter would have filled with their content.
    """

    path: Path
    branch: str
    made_at: str | None = None
    made_folders: tuple[Path, ...] = ()
    has_pointers: bool = False


class Removal(NamedTuple):
    """What has become of a worktree.

    Attributes:
        moved_to: Where it is now; None if nothing is left of it.
        reasons: Why it was not removed.
        was_there: Whether there was one at all.
    """

    moved_to: Path | None = None
    reasons: Sequence[str] = ()
    was_there: bool = True


async def add(git: Git, place: Place, branch: str, base: str | None, workspace_id: str) -> Worktree:
    """Make a worktree on a branch, which is made from `base` if it does not exist.

    Raises:
        OrchestrationError: It cannot be made. The error says whether something is left of the attempt.
        GitError: git gave no answer before anything was done.
    """
    await git_names.check_branch(git, branch)
    base_commit = await git_names.base_commit(git, base) if base is not None else None
    async with _locked(git.root):
        has_branch = await git_names.branch_commit(git, branch) is not None
        commit = None if has_branch else base_commit or await git_names.base_commit(git, None)
        worktree = Worktree(place.path, branch)
        # A client that goes away must not leave a branch behind whose maker is unknown.
        with CancelScope(shield=True):
            try:
                worktree = worktree._replace(made_folders=await to_thread.run_sync(_make_folder, git.root, place))
                if commit is not None:
                    await _make_branch(git, branch, commit)
                    worktree = worktree._replace(made_at=commit)
                await git.run("worktree", "add", "--quiet", "--", str(place.path), branch)
                await _mark(git, place.path, workspace_id)
            except (DeepWorkError, OSError) as error:
                leftovers = await _undo(git, worktree)
                reason = error.strerror if isinstance(error, OSError) else error.message
                raise _refused(f"the worktree cannot be made: {reason}", left_over(leftovers)) from None
    return worktree._replace(has_pointers=await _has_pointers(git, place.path))


async def undo(git: Git, worktree: Worktree) -> list[str]:
    """Take back what a call has made, and name what is left of it."""
    with CancelScope(shield=True):
        try:
            async with _locked(git.root):
                leftovers = await _undo(git, worktree)
        except DeepWorkError:
            leftovers = [f"a worktree in {worktree.path}"]
    return leftovers


async def _undo(git: Git, worktree: Worktree) -> list[str]:
    leftovers = []
    try:
        entry = await worktree_entries.find_entry(git, worktree.path) if worktree.made_folders else None
        if entry is not None:
            # This call has made it, whether or not it came to write the mark.
            removal = await _remove(git, _unlocked(entry)._replace(workspace_id=""), worktree.branch)
            leftovers += [f"a worktree in {removal.moved_to}"] if removal.moved_to else []
    except (DeepWorkError, OSError):
        leftovers.append(f"a worktree in {worktree.path}")
    for folder in reversed(worktree.made_folders):
        with suppress(OSError):  # it may not be empty any more
            os.rmdir(folder)
    if worktree.made_folders and not leftovers and exists(worktree.path):
        leftovers.append(f"the folder {worktree.path}")
    if worktree.made_at is not None:
        try:
            await git.run("update-ref", "-d", git_names.branch_ref(worktree.branch), worktree.made_at)
        except GitError:
            leftovers.append(f"the branch {worktree.branch!r}")
    return leftovers


async def remove(git: Git, path: Path, branch: str, workspace_id: str) -> Removal:
    """Remove the worktree of a workspace, but not its branch; or move it aside if something in it would be lost.

    Raises:
        OrchestrationError: INVALID_STATE; this plugin has made no such worktree, and nothing was changed.
        GitError: git cannot; the worktree is where it was, if nothing else is said.
    """
    if await _removable(git, path, workspace_id) is None:
        return Removal(was_there=False)
    async with _locked(git.root):
        entry = await _removable(git, path, workspace_id)  # while this call waited, another may have removed it
        with CancelScope(shield=True):
            removal = await _remove(git, entry, branch) if entry else Removal(was_there=False)
    return removal


async def forget(git: Git, path: Path, branch: str, workspace_id: str) -> None:
    """Let git forget a worktree that this plugin has made, whose folder is gone, if nothing else is lost with it.

    Raises:
        GitError: git cannot.
    """
    entry = await worktree_entries.find_entry(git, path)
    is_ours = entry is not None and entry.workspace_id == workspace_id and entry.lock is None
    # What lies elsewhere may only be on a drive that is not mounted.
    is_gone = not exists(path) and path.parent == git.root / FOLDER and path.parent.is_dir()
    if entry and is_ours and is_gone:
        would_be_lost = await _has_staged(git, entry) or await losses.unfinished(git, entry, branch)
        if not would_be_lost:
            await git.run("worktree", "remove", "--", str(path))


def is_folder(path: str) -> bool:
    """True if the folder of a worktree is still there."""
    return os.path.isdir(path)


def removed_folder(root: Path) -> Path:
    """Return the folder of the worktrees that were moved aside."""
    return root / FOLDER / REMOVED


async def _removable(git: Git, path: Path, workspace_id: str) -> Entry | None:
    """Return the worktree of a workspace; None if nothing is there.

    Raises:
        OrchestrationError: INVALID_STATE; it may not be removed.
    """
    entry = await worktree_entries.find_entry(git, path)
    name = f"the worktree {str(path)!r}"
    if not exists(path):
        return None
    if entry is None:
        raise _refused(f"{str(path)!r} is not a worktree of this repository", "Remove it by hand, if it is not needed.")
    if entry.workspace_id not in (workspace_id, None):
        problem = f"{name} was made for another workspace: {entry.workspace_id!r}"
        raise _refused(problem, "Clean up that workspace, if it is not needed.")
    if entry.workspace_id is None and not path.is_relative_to(git.root / FOLDER):
        problem = f"{name} was not made by this plugin, so it is never removed"
        raise _refused(problem, "Its user can remove it: `git worktree remove`.")
    if entry.lock is not None:
        problem = f"{name} is locked: {entry.lock[:200] or 'without a reason'}"
        raise _refused(problem, "Its user can unlock it: `git worktree unlock`.")
    return entry


async def _remove(git: Git, entry: Entry, branch: str) -> Removal:
    """Remove a worktree if nothing would be lost with it; else move it aside."""
    if not entry.is_there:
        raise GitError(f"git keeps a worktree at {str(entry.place)!r}, but its folder is absent or another one")
    # What a worktree's own configuration says holds only if git is opened there: its filters are switched off too.
    tree = await git.worktree_around(entry.place)
    if tree is None or tree.top != entry.place:
        raise GitError(f"{str(entry.place)!r} is not a worktree that git can use")
    reasons = [] if entry.workspace_id is not None else ["it has no mark, so this plugin may not have made it"]
    reasons += await losses.losses(git, tree, entry, branch)
    if reasons:
        return Removal(await _move_aside(git, entry), reasons)
    # Without --force git refuses every worktree of a repository with submodules. None is there, or it would be a loss.
    has_submodules = any(mode.startswith("160000 ") for mode in await tree.paths("ls-files", "-s", "-z"))
    force = ["--force"] if has_submodules else []
    try:
        await tree.run("-C", str(git.root), "worktree", "remove", *force, "--", str(entry.place))
    except GitError as error:
        rest = f"What was not removed of it is in {entry.place}." if exists(entry.place) else "Its folder was removed."
        raise _refused(error.message, rest) from None
    return Removal()


async def _move_aside(git: Git, entry: Entry) -> Path:
    """Move a worktree into the folder for removed ones. It stays a worktree, and its submodules stay submodules.

    Raises:
        GitError: It cannot be moved, and is where it was.
        OrchestrationError: It was moved, but a submodule of it does not find its repository any more.
    """
    places = [linked.place for linked in await worktree_entries.entries(git) if linked.place != entry.place]
    inner = [place for place in places if place.is_relative_to(entry.place)]
    if inner:
        raise GitError(f"another worktree lies in it: {inner[0]}")
    pointers = await to_thread.run_sync(lambda: [*losses.nested_repositories(entry.place)])
    submodules = {name: worktree_entries.named_by(entry.place / name) for name in pointers}
    strange = [
        name
        for name, git_folder in submodules.items()
        if git_folder and not git_folder.is_relative_to(entry.git_folder)
    ]
    if strange:
        raise GitError(f"it holds a repository whose git folder lies elsewhere: {strange[0]!r}")
    place = await to_thread.run_sync(_move, git.root, entry)
    try:
        for name, git_folder in submodules.items():
            if git_folder is not None:
                await to_thread.run_sync(worktree_entries.write_pointer, place / name, git_folder)
                await git.run(
                    "config", "--file", str(git_folder / "config"), "core.worktree", str((place / name).parent)
                )
    except (OSError, DeepWorkError) as error:
        problem = f"a submodule in {place} does not find its repository: {error}"
        raise _refused(problem, f"The worktree was moved to {place}.") from None
    return place


def _move(root: Path, entry: Entry) -> Path:
    aside = removed_folder(root)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    names = (f"{entry.place.name}-{stamp}{ending}" for ending in ("", *(f"-{number}" for number in range(2, 1000))))
    try:
        _ignore(root)
        with Folder.open(aside, inside=root / FOLDER, create=True):
            place = next(aside / name for name in names if not os.path.lexists(aside / name))
            worktree_entries.move(entry, place)
    except (OSError, DeepWorkError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise GitError(f"{str(entry.place)!r} cannot be moved to {aside}: {reason}") from None
    return place


async def _make_branch(git: Git, branch: str, commit: str) -> None:
    """Make a branch, unless it was made meanwhile.

    Raises:
        GitError: It was, or it is checked out without a commit: the files there belong to the first one to come.
    """
    listed = os.fsdecode(await git.run("worktree", "list", "--porcelain", "-z")).split("\0")
    if f"branch {git_names.branch_ref(branch)}" in listed:
        raise GitError(f"the branch {branch!r} is checked out in a worktree, and has no commit yet")
    await git.run(
        "update-ref", "-m", "branch: Created for a workspace", git_names.branch_ref(branch), commit, "0" * len(commit)
    )


async def _mark(git: Git, path: Path, workspace_id: str) -> None:
    entry = await worktree_entries.find_entry(git, path)
    if entry is None:
        raise GitError(f"git has made no worktree at {str(path)!r}")
    worktree_entries.write_mark(entry, workspace_id)


def _unlocked(entry: Entry) -> Entry:
    """Remove the lock that git itself has left, when it was killed while it made a worktree."""
    if entry.lock == _BEING_MADE:
        with suppress(OSError):
            os.unlink(entry.git_folder / "locked")
    return entry


async def _has_staged(git: Git, entry: Entry) -> bool:
    """True if the index of a worktree whose folder is gone holds something that its commit does not."""
    compared = await git.try_run(f"--git-dir={entry.git_folder}", "diff-index", "--cached", "--quiet", "HEAD", "--")
    return compared.returncode != 0


async def _has_pointers(git: Git, path: Path) -> bool:
    listed = await git.try_run("-C", str(path), "ls-files", "-z", "--", ":(attr:filter=lfs)")
    return bool(listed.stdout)


def _make_folder(root: Path, place: Place) -> tuple[Path, ...]:
    """Make the folder of a worktree, which must not exist, and name all folders that were made.

    Raises:
        GitError: Something is there.
    """
    if place.path.is_relative_to(root / FOLDER):
        _ignore(root)
    above = [folder for folder in place.path.parents if folder.is_relative_to(place.root) and not folder.exists()]
    with Folder.open(place.path.parent, inside=place.root, create=True) as parent:
        try:
            os.mkdir(place.path.name, dir_fd=parent.descriptor)
        except FileExistsError:
            raise GitError(f"{str(place.path)!r} exists already") from None
    return (*reversed(above), place.path)


def _ignore(root: Path) -> None:
    """Keep worktrees that lie in `.deepwork/worktrees` out of git's sight."""
    with Folder.open(root / FOLDER, inside=root, create=True) as folder:
        if ".gitignore" not in folder.names():
            folder.replace(".gitignore", b"*\n")


@asynccontextmanager
async def _locked(root: Path) -> AsyncIterator[None]:
    """Make and remove one worktree at a time: git checks out one branch in two if it is asked at the same moment."""

    def lock() -> ExitStack:
        _ignore(root)
        with ExitStack() as stack:
            folder = stack.enter_context(Folder.open(root / FOLDER, inside=root))
            stack.enter_context(folder.locked(_LOCK, subject="the worktrees", seconds=_LOCK_SECONDS))
            return stack.pop_all()

    try:
        stack = await to_thread.run_sync(lock)
    except OSError as error:
        raise GitError(f"{root / FOLDER} cannot be used: {error.strerror}") from None
    with stack:
        yield


def left_over(leftovers: list[str]) -> str:
    """Return a text about the remains of a call that failed."""
    return f"This was made and is left: {', '.join(leftovers)}." if leftovers else "Nothing was changed."


def _refused(message: str, suggestion: str) -> OrchestrationError:
    return OrchestrationError("INVALID_STATE", message, suggestion)
