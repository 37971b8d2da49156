"""Which files a change touches, as git sees it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from deepwork.api import ArgumentError, PathRefused, resolve_inside
from deepwork_review.git import Git, GitError, repository_of
from deepwork_review.names import shown

# Where origin's default branch, or ours, is found, the best first.
CANDIDATES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)
OPTIONS = (
    *("--raw", "-z", "--abbrev=40", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--ignore-submodules=dirty", "--relative", f"-O{os.devnull}"),
)
SUBMODULE = b"160000"

_ODD_REF = re.compile(r"^-|[\x00-\x20\x7f:?*\[\\{}]|\.\.")


@dataclass(frozen=True)
class Changes:
    """What has changed.

    Attributes:
        files: Changed files that exist, sorted.
        deleted: Those that no longer do; of a renamed file the old name is one of them.
        compared: With what, in words.
        notes: What the reader has to know: what was left out, and why there may be more.
        complete: Whether all changes are known. If not, an empty list means nothing.
    """

    files: tuple[str, ...]
    deleted: tuple[str, ...] = ()
    compared: str = "the files that were named"
    notes: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class Base:
    """The commit, or tree, that everything is compared with."""

    commit: str
    label: str
    notes: tuple[str, ...] = ()
    complete: bool = True


async def changed_files(root: Path, git: Git, base_ref: str | None) -> Changes:
    """Ask git for all changes since a branch left its base: committed, staged, unstaged and untracked.

    Raises:
        ArgumentError: The base cannot be used.
        GitError: git gave no answer.
    """
    base = await _find_base(git, base_ref)
    outputs: dict[str, list[tuple[str, bool]]] = {}

    async def tree_of_work() -> None:
        done = await git.try_run("diff", *OPTIONS, base.commit, "--")
        # In a partial clone blobs may be missing, and we fetch nothing. This reads none, and may list too much.
        output = await git.run("diff-index", *OPTIONS, base.commit, "--") if done.returncode else done.stdout
        outputs["tree"] = list(_raw(output))

    async def index() -> None:
        outputs["staged"] = list(_raw(await git.run("diff", *OPTIONS, "--cached", base.commit, "--")))

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tree_of_work)
            tasks.start_soon(index)
            tasks.start_soon(git.untracked)
    except* GitError as group:
        raise group.exceptions[0] from None
    tree, staged, untracked = outputs["tree"], outputs["staged"], await git.untracked()
    notes = [*base.notes, *_left_out([*tree, *staged], untracked), *await _submodules(root, git)]
    notes += _only_staged(tree, staged)
    paths = {path for path, submodule in [*tree, *staged] if not submodule}
    paths |= {path for path in untracked if not path.endswith("/")}
    here = _existing(root, paths)
    return Changes(
        files=tuple(sorted(here)),
        deleted=tuple(sorted(paths - here)),
        compared=base.label,
        notes=tuple(notes),
        complete=base.complete,
    )


def named_files(root: Path, names: Sequence[str]) -> Changes:
    """Take the files that somebody names: normalised, in the project, and existing ones only.

    Raises:
        ArgumentError: None is left.
    """
    files: set[str] = set()
    notes: list[str] = []
    if not names:
        raise ArgumentError("files: none was named", hint="Leave it out to review all that has changed.")
    for name in names:
        try:
            path = inside(root, name)
        except PathRefused as error:
            notes.append(f"{shown(name)} {error.message} and was left out")
            continue
        if os.path.isdir(root / path) and not os.path.islink(root / path):  # those of Path raise for long names
            notes.append(f"{shown(name)} is a folder and was left out; name its files")
        elif not os.path.lexists(root / path):
            notes.append(f"{shown(name)} does not exist and was left out")
        else:
            files.add(path)
    if not files:
        raise ArgumentError("\n".join(["files: none can be reviewed", *notes]))
    return Changes(files=tuple(sorted(files)), notes=tuple(notes))


def inside(root: Path, name: str) -> str:
    """Write a path relative to the project; a link stays a link, and must lead to something in the project.

    Raises:
        PathRefused: It lies outside.
    """
    resolve_inside(name, [root])
    parent, _ = resolve_inside(os.path.dirname(os.path.join(root, name.rstrip("/"))), [root])
    last = os.path.basename(name.rstrip("/"))
    if last in ("", ".", ".."):
        raise PathRefused("is a folder, not a file")
    return os.path.relpath(parent / last, root)


async def _find_base(git: Git, base_ref: str | None) -> Base:
    head = await _commit(git, "HEAD")
    if head is None:
        empty = (await git.run("hash-object", "-t", "tree", "--stdin")).decode().strip()
        if base_ref:
            raise ArgumentError(f"the base {base_ref!r} cannot be used: there is no commit yet")
        return Base(empty, "nothing, for there is no commit yet")
    if base_ref:
        return await _given_base(git, base_ref)
    format_ = "--format=%(refname)%00%(objectname)%00%(symref:short)"
    lines = (await git.run("for-each-ref", format_, *CANDIDATES)).decode(errors="surrogateescape").splitlines()
    found = {name: (commit, symref) for name, commit, symref in (line.split("\0") for line in lines)}
    name = next((name for name in CANDIDATES if name in found), None)
    if name is None:
        return _no_base(head, "there is no default branch: neither of origin nor a local main or master", git)
    commit, symref = found[name]
    label = symref or name.split("/", 2)[2]
    fork = await _merge_base(git, commit)
    if fork is None:
        return _no_base(head, f"no commit is known in which this branch left {label!r}", git)
    return Base(fork, _label(label, fork), _shallow_note(git), complete=not git.shallow)


async def _given_base(git: Git, base_ref: str) -> Base:
    if _ODD_REF.search(base_ref):
        raise ArgumentError(f"the base {base_ref!r} is no name of a branch, tag or commit")
    commit = await _commit(git, base_ref)
    if commit is None:
        raise ArgumentError(
            f"the base {base_ref!r} is not known to this repository", hint="Fetch it, or name another one."
        )
    fork = await _merge_base(git, commit)
    if fork is None:
        hint = "`git fetch --unshallow` brings the whole history." if git.shallow else None
        raise ArgumentError(f"no commit is known in which this branch left {base_ref!r}", hint=hint)
    return Base(fork, _label(base_ref, fork), _shallow_note(git), complete=not git.shallow)


def _no_base(head: str, reason: str, git: Git) -> Base:
    cure = "`git fetch --unshallow`" if git.shallow else "`git remote set-head origin --auto`, or set review.base"
    note = f"{reason}. Only uncommitted changes are covered, commits of this branch are NOT. Cure: {cure}"
    return Base(head, "the last commit only", (note,), complete=False)


def _shallow_note(git: Git) -> tuple[str, ...]:
    if not git.shallow:
        return ()
    return ("this is a shallow clone: changes before its first commit are not known. Cure: `git fetch --unshallow`",)


def _label(name: str, fork: str) -> str:
    return f"{name} (since {fork[:10]})"


async def _commit(git: Git, ref: str) -> str | None:
    found = await git.try_run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    return found.stdout.decode().strip() if found.returncode == 0 else None


async def _merge_base(git: Git, commit: str) -> str | None:
    found = await git.try_run("merge-base", commit, "HEAD")
    return found.stdout.decode().strip() if found.returncode == 0 else None


def _existing(root: Path, paths: set[str]) -> set[str]:
    return {path for path in paths if os.path.lexists(root / path)}


def _raw(output: bytes) -> Iterator[tuple[str, bool]]:
    """Read `git diff --raw -z`: path, and whether it is a submodule."""
    parts = iter(output.split(b"\0")[:-1])
    for about in parts:
        before, after, *_ = about.removeprefix(b":").split(b" ")
        yield os.fsdecode(next(parts)), SUBMODULE in (before, after)


def _left_out(diff: list[tuple[str, bool]], untracked: list[str]) -> Iterator[str]:
    for path in sorted({path for path, submodule in diff if submodule}):
        yield f"submodule {shown(path)} has changed and was left out: review it in its own repository"
    for path in untracked:
        if path.endswith("/"):
            yield f"{shown(path)} is a repository of its own and was left out"


def _only_staged(tree: list[tuple[str, bool]], staged: list[tuple[str, bool]]) -> Iterator[str]:
    for path in sorted({path for path, _ in staged} - {path for path, _ in tree}):
        yield f"{shown(path)} is staged with other content than it has in the working tree; only the latter is reviewed"


async def _submodules(root: Path, git: Git) -> list[str]:
    """Say that there are submodules: git would have to run in them to see whether their files have changed."""
    top = repository_of(root) or root
    if not (top / ".gitmodules").is_file():
        return []
    listed = await git.try_run("config", "-z", "--file", str(top / ".gitmodules"), "--get-regexp", r"\.path$")
    paths = [os.fsdecode(entry.partition(b"\n")[2]) for entry in listed.stdout.split(b"\0")[:-1]]
    below = sorted(path for path in paths if (top / path).is_relative_to(root))
    if not below:
        return []
    return [f"changes inside of submodules are not looked at: {', '.join(map(shown, below[:10]))}"]
