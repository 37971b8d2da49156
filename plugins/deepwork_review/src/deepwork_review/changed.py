"""Which files have changed: according to git, or to the names in a call."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from deepwork.errors import ArgumentError, GitError, PathRefused
from deepwork.paths.paths import resolve_inside
from deepwork_review.names import printable
from deepwork_review.working_tree import WorkingTree

# Refs of the default branch, the best first: origin's, then a local one.
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

# What could be read as an option, a range, or more than the name of a commit.
_UNSAFE_REF = re.compile(r"^-|[\x00-\x20\x7f:?*\[\\{}]|\.\.")


@dataclass(frozen=True)
class Changes:
    """What has changed.

    Attributes:
        files: Changed files that exist, sorted.
        deleted: Changed files that no longer exist. A renamed file is here under its old name.
        compared: What the files are compared with, in words.
        notes: What was left out, and why there may be more.
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


async def changed_files(tree: WorkingTree, base_ref: str | None) -> Changes:
    """Ask git for all changes since a branch left its base: committed, staged, unstaged and untracked.

    Raises:
        ArgumentError: The base cannot be used.
        GitError: git gave no answer.
    """
    base = await _find_base(tree, base_ref)
    unstaged, staged = await _diffs(tree, base)
    tracked, untracked = [*unstaged, *staged], await tree.untracked()
    notes = [*base.notes, *_left_out(tracked, untracked), *await _submodules(tree), *_only_staged(unstaged, staged)]
    paths = {path for path, is_submodule in tracked if not is_submodule}
    paths |= {path for path in untracked if not path.endswith("/")}
    existing = _existing(tree.root, paths)
    return Changes(
        files=tuple(sorted(existing)),
        deleted=tuple(sorted(paths - existing)),
        compared=base.label,
        notes=tuple(notes),
        complete=base.complete,
    )


async def _diffs(tree: WorkingTree, base: Base) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return what differs from the base in the working tree, and in the index; the untracked files are read beside.

    Raises:
        GitError: git gave no answer.
    """
    diffs: dict[str, list[tuple[str, bool]]] = {}

    async def diff_files() -> None:
        completed = await tree.try_run("diff", *OPTIONS, base.commit, "--")
        if completed.returncode:
            # In a partial clone contents may be missing, and we fetch nothing. `diff-index` does not read contents,
            # so it may list files whose times alone have changed.
            diffs["files"] = list(_parse_diff(await tree.run("diff-index", *OPTIONS, base.commit, "--")))
        else:
            diffs["files"] = list(_parse_diff(completed.stdout))

    async def diff_index() -> None:
        diffs["index"] = list(_parse_diff(await tree.run("diff", *OPTIONS, "--cached", base.commit, "--")))

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(diff_files)
            tasks.start_soon(diff_index)
            tasks.start_soon(tree.untracked)
    except* GitError as group:
        raise group.exceptions[0] from None
    return diffs["files"], diffs["index"]


def named_files(root: Path, names: Sequence[str]) -> Changes:
    """Count named files as changed, as far as they are existing files in the project.

    Raises:
        ArgumentError: None of the named files exists.
    """
    files: set[str] = set()
    notes: list[str] = []
    if not names:
        return Changes(files=(), compared="an empty list of files")
    for name in names:
        try:
            path = relative_path(root, name)
        except PathRefused as error:
            notes.append(f"{printable(name)} {error.message} and was left out")
            continue
        # Not `Path.is_dir`: it raises for names that are too long.
        if os.path.isdir(root / path) and not os.path.islink(root / path):
            notes.append(f"{printable(name)} is a folder and was left out; name its files")
        elif not os.path.lexists(root / path):
            notes.append(f"{printable(name)} does not exist and was left out")
        else:
            files.add(path)
    if not files:
        raise ArgumentError("\n".join(["files: none can be reviewed", *notes]))
    return Changes(files=tuple(sorted(files)), notes=tuple(notes))


def relative_path(root: Path, name: str) -> str:
    """Write the path of a file relative to the project. A link is not followed, but must not lead out of the project.

    Raises:
        PathRefused: It lies outside, or is a folder.
    """
    resolve_inside(name, [root])
    parent, _ = resolve_inside(os.path.dirname(os.path.join(root, name.rstrip("/"))), [root])
    last = os.path.basename(name.rstrip("/"))
    if last in ("", ".", ".."):
        raise PathRefused("is a folder, not a file")
    return os.path.relpath(parent / last, root)


async def _find_base(tree: WorkingTree, base_ref: str | None) -> Base:
    head = await tree.commit_of("HEAD")
    if head is None:
        empty = (await tree.run("hash-object", "-t", "tree", "--stdin")).decode().strip()
        if base_ref:
            raise ArgumentError(f"the base {base_ref!r} cannot be used: there is no commit yet")
        return Base(empty, "nothing, for there is no commit yet")
    if base_ref:
        return await _named_base(tree, base_ref)
    format_ = "--format=%(refname)%00%(objectname)%00%(symref:short)"
    lines = (await tree.run("for-each-ref", format_, *CANDIDATES)).decode(errors="surrogateescape").splitlines()
    refs = {name: (commit, symref) for name, commit, symref in (line.split("\0") for line in lines)}
    name = next((name for name in CANDIDATES if name in refs), None)
    if name is None:
        return _no_base(head, "there is no default branch: neither of origin nor a local main or master", tree)
    commit, symref = refs[name]
    label = symref or name.split("/", 2)[2]
    fork = await _merge_base(tree, commit)
    if fork is None:
        return _no_base(head, f"no commit is known in which this branch left {label!r}", tree)
    return Base(fork, _label(label, fork), _shallow_note(tree), complete=not tree.shallow)


async def _named_base(tree: WorkingTree, base_ref: str) -> Base:
    if _UNSAFE_REF.search(base_ref):
        raise ArgumentError(f"the base {base_ref!r} is not the name of a branch, tag or commit")
    commit = await tree.commit_of(base_ref)
    if commit is None:
        raise ArgumentError(
            f"the base {base_ref!r} is not known to this repository", hint="Fetch it, or name another one."
        )
    fork = await _merge_base(tree, commit)
    if fork is None:
        hint = "`git fetch --unshallow` brings the whole history." if tree.shallow else None
        raise ArgumentError(f"no commit is known in which this branch left {base_ref!r}", hint=hint)
    return Base(fork, _label(base_ref, fork), _shallow_note(tree), complete=not tree.shallow)


def _no_base(head: str, reason: str, tree: WorkingTree) -> Base:
    cure = "`git fetch --unshallow`" if tree.shallow else "`git remote set-head origin --auto`, or set review.base"
    note = f"{reason}. Only uncommitted changes are covered, commits of this branch are NOT. Cure: {cure}"
    return Base(head, "the last commit only", (note,), complete=False)


def _shallow_note(tree: WorkingTree) -> tuple[str, ...]:
    if not tree.shallow:
        return ()
    return ("this is a shallow clone: changes before its first commit are not known. Cure: `git fetch --unshallow`",)


def _label(name: str, fork: str) -> str:
    return f"{name} (since {fork[:10]})"


async def _merge_base(tree: WorkingTree, commit: str) -> str | None:
    completed = await tree.try_run("merge-base", commit, "HEAD")
    return completed.stdout.decode().strip() if completed.returncode == 0 else None


def _existing(root: Path, paths: set[str]) -> set[str]:
    return {path for path in paths if os.path.lexists(root / path)}


def _parse_diff(output: bytes) -> Iterator[tuple[str, bool]]:
    """Read the output of `git diff --raw -z`: each path, and whether it is a submodule."""
    parts = iter(output.split(b"\0")[:-1])
    for modes in parts:
        before, after, *_ = modes.removeprefix(b":").split(b" ")
        yield os.fsdecode(next(parts)), SUBMODULE in (before, after)


def _left_out(tracked: list[tuple[str, bool]], untracked: list[str]) -> Iterator[str]:
    for path in sorted({path for path, is_submodule in tracked if is_submodule}):
        yield f"submodule {printable(path)} has changed and was left out: review it in its own repository"
    for path in untracked:
        if path.endswith("/"):
            yield f"{printable(path)} is a repository of its own and was left out"


def _only_staged(unstaged: list[tuple[str, bool]], staged: list[tuple[str, bool]]) -> Iterator[str]:
    for path in sorted({path for path, _ in staged} - {path for path, _ in unstaged}):
        name = printable(path)
        yield f"{name} is staged with other content than it has in the working tree; only the latter is reviewed"


async def _submodules(tree: WorkingTree) -> list[str]:
    """Return a note on submodules: to see changes inside of them, git would have to run in each."""
    file = tree.top / ".gitmodules"
    if not file.is_file():
        return []
    completed = await tree.try_run("config", "-z", "--file", str(file), "--get-regexp", r"\.path$")
    paths = [os.fsdecode(entry.partition(b"\n")[2]) for entry in completed.stdout.split(b"\0")[:-1]]
    below = sorted(path for path in paths if (tree.top / path).is_relative_to(tree.root))
    if not below:
        return []
    return [f"changes inside of submodules are not looked at: {', '.join(map(printable, below[:10]))}"]
