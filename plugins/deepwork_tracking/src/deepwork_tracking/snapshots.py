"""What a working tree was like when a task began, so that its end can be compared with it."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from deepwork.api import Git
from deepwork.errors import GitError
from deepwork_tracking.listing import files_below, is_own
from deepwork_tracking.states import MAX_BYTES, MAX_FILES, UNREAD, StateReader

DIFF = (
    *("diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-relative", "--ignore-submodules=dirty", f"-O{os.devnull}"),
)
UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
SUBMODULE = "160000"

# Opens git in a folder, as the host of the plugin allows it.
OpenGit = Callable[[Path], Awaitable[Git | None]]


class TreeSnapshot(BaseModel):
    """The stored state of the moment at which a task began.

    Attributes:
        type: `git`, or `checksum` without a commit to compare with.
        id: The hash of the commit, or `checksum-` and milliseconds.
        machine: The machine on which the files are.
        toplevel: The folder to which all paths are relative.
        states: With git, the files that differed from the commit; without it, all files. None: it did not exist.
        last: The last path that a checksum snapshot covers; None if it covers all.
        warnings: What is not as it should be.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["git", "checksum"]
    id: str
    machine: str
    toplevel: str
    states: dict[str, str | None]
    last: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A file that differs from a commit: git's letter for it, and its state in the commit."""

    letter: str
    state: str


async def take_snapshot(folder: Path, machine: str, open_: OpenGit) -> TreeSnapshot:
    """Take the snapshot of the working tree around a folder, or of the folder itself outside of one."""
    reasons: list[str] = []
    files: list[str] | None = None
    try:
        if git := await open_git(folder, open_):
            folder = git.top
            if commit := await git.commit_of("HEAD"):
                return await _git_snapshot(git, commit, machine)
            files = await list_files(git, folder)
    except GitError as error:
        reasons.append(f"git failed, so the contents of files are compared instead: {error.message}")
    if files is None:
        files = await list_files(None, folder)
    return await _checksum_snapshot(folder, files, machine, reasons)


async def open_git(folder: Path, open_: OpenGit) -> Git | None:
    """Return git for the whole working tree in which a folder lies; None if it lies in none.

    Raises:
        GitError: There is a repository, but git cannot or will not use it.
    """
    git = await open_(folder)
    return None if git is None else await git.at_top()


async def differences(git: Git, commit: str) -> tuple[dict[str, Entry], list[str]]:
    """List the tracked files that differ from a commit, and the untracked ones.

    Raises:
        GitError: git gave no answer.
    """
    tracked: dict[str, Entry] = {}
    untracked: list[str] = []

    async def diff() -> None:
        tracked.update(_parse_diff((await git.run(*DIFF, commit, "--")).split(b"\0")[:-1]))

    async def list_untracked() -> None:
        untracked.extend(path for path in await git.paths(*UNTRACKED) if not is_own(path))

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(diff)
            tasks.start_soon(list_untracked)
    except* GitError as group:
        raise group.exceptions[0] from None
    return tracked, untracked


async def read_states(
    git: Git | None, top: Path, paths: Iterable[str], algorithm: str, submodules: frozenset[str] = frozenset()
) -> tuple[dict[str, str | None], int]:
    """Read the states of files, and count existing files that were not read.

    Raises:
        GitError: git gave no answer about a submodule.
    """
    wanted = sorted(paths)
    reader = StateReader(top)
    states = await to_thread.run_sync(lambda: {path: reader.state(path, algorithm) for path in wanted})
    for path in submodules.intersection(wanted):
        states[path] = await _submodule_state(git, path) if git else None
    return states, reader.unread


async def list_files(git: Git | None, top: Path) -> list[str]:
    """List all files that are not ignored, sorted, and none that the server itself keeps.

    Raises:
        GitError: git gave no answer.
    """
    if git is None:
        return await to_thread.run_sync(lambda: sorted(files_below(top)))
    return sorted({path for path in await git.paths(*UNTRACKED, "--cached") if not is_own(path)})


def algorithm_of(commit: str) -> str:
    """Name the hash of git's object ids, which their length tells."""
    return "sha256" if len(commit) == 64 else "sha1"


def unread_warnings(number: int) -> list[str]:
    """Return the warning that so many files were not compared; nothing for 0."""
    if not number:
        return []
    limits = f"there are more than {MAX_FILES:,} files or {MAX_BYTES // 1024**2} MiB"
    return [f"{number:,} file(s) were not compared, because {limits}, or they may not be read"]


async def _git_snapshot(git: Git, commit: str, machine: str) -> TreeSnapshot:
    tracked, untracked = await differences(git, commit)
    submodules = frozenset(path for path, entry in tracked.items() if entry.state.startswith(SUBMODULE))
    dirty = sorted({*tracked, *untracked})
    states, unread = await read_states(git, git.top, dirty[:MAX_FILES], algorithm_of(commit), submodules)
    return TreeSnapshot(
        type="git",
        id=commit,
        machine=machine,
        toplevel=str(git.top),
        states=dict.fromkeys(dirty, UNREAD) | states,
        warnings=tuple(unread_warnings(unread + len(dirty) - len(states))),
    )


async def _checksum_snapshot(top: Path, files: list[str], machine: str, reasons: list[str]) -> TreeSnapshot:
    states, unread = await read_states(None, top, files[:MAX_FILES], "sha1")
    is_whole = len(states) == len(files)
    return TreeSnapshot(
        type="checksum",
        id=f"checksum-{time.time_ns() // 1_000_000}",
        machine=machine,
        toplevel=str(top),
        states=states,
        last=None if is_whole else files[MAX_FILES - 1],
        warnings=(*reasons, *unread_warnings(unread + len(files) - len(states))),
    )


async def _submodule_state(git: Git, path: str) -> str:
    completed = await git.try_run("-C", path, "rev-parse", "--verify", "--quiet", "HEAD")
    return f"{SUBMODULE} {completed.stdout.decode().strip()}" if completed.returncode == 0 else UNREAD


def _parse_diff(parts: list[bytes]) -> Iterator[tuple[str, Entry]]:
    """Read the output of `git diff --raw -z`. Of a file in conflict the line that compares contents comes last."""
    for about, path in zip(parts[::2], parts[1::2], strict=True):
        mode, new_mode, blob, _, letter = about.decode().removeprefix(":").split(" ")
        name = os.fsdecode(path)
        if not is_own(name):
            shown_mode = SUBMODULE if SUBMODULE in (mode, new_mode) else mode
            yield name, Entry(letter[0], f"{shown_mode} {blob}")
