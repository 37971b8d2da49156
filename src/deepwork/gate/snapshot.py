"""A private copy of what is judged: the bytes that are hashed are those that a reviewer reads."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from deepwork.errors import StorageError
from deepwork.files.private_folders import private_folder
from deepwork.gate.fingerprints import (
    MAX_BYTES,
    Fingerprint,
    Fingerprints,
    changed_files,
    fingerprint,
    take_fingerprints,
    too_large,
)
from deepwork.gate.payload import ListedFile

_OUTSIDE = ".outside-of-the-project"


@dataclass(frozen=True)
class Snapshot:
    """Copies of files, each below `root` at the path that it has below the project.

    Attributes:
        root: A folder that only its owner can enter.
        originals: What the copied files were when they were copied.
        copies: What the copies were then.
    """

    root: Path
    originals: Fingerprints
    copies: Fingerprints

    def listed(self, files: Iterable[ListedFile]) -> list[ListedFile]:
        """Give files by the paths of their copies."""
        return [ListedFile(copy_name(path), output) for path, output in files]

    def changed(self, roots: Sequence[Path]) -> list[str]:
        """Name the files that are not what they were when they were copied, or whose copies are not."""
        changed = {*changed_files(self.originals, take_fingerprints(self.originals, roots))}
        changed_copies = {*changed_files(self.copies, take_fingerprints(self.copies, [self.root]))}
        return [path for path in self.originals if path in changed or copy_name(path) in changed_copies]


def copy_name(path: str) -> str:
    """Say where below a snapshot the copy of a file lies; one that is not in the project has an absolute path."""
    return os.path.join(_OUTSIDE, path.lstrip("/")) if path.startswith("/") else path


@asynccontextmanager
async def snapshot(paths: Iterable[str], roots: Sequence[Path]) -> AsyncIterator[Snapshot]:
    """Copy files to a private folder, and remove it at the end.

    Raises:
        OutputError: They are too large to be judged.
        StorageError: They cannot be copied.
    """
    stack = ExitStack()
    try:
        folder = await to_thread.run_sync(stack.enter_context, private_folder())
    except OSError as error:
        raise _not_copied(error) from error
    try:
        yield await to_thread.run_sync(_copied, [*dict.fromkeys(paths)], roots, folder)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(stack.close)


def _copied(paths: Sequence[str], roots: Sequence[Path], folder: Path) -> Snapshot:
    budget = _Budget(MAX_BYTES)
    try:
        originals = {path: _copy(path, roots, folder, budget) for path in paths}
    except OSError as error:
        raise _not_copied(error) from error
    names = [copy_name(path) for path, original in originals.items() if original.identity]
    return Snapshot(folder, originals, take_fingerprints(names, [folder]))


def _copy(path: str, roots: Sequence[Path], folder: Path, budget: _Budget) -> Fingerprint:
    """Copy a file; what cannot be read has no copy."""
    copied = folder / copy_name(path)
    copied.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(copied, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400), "wb") as file:

        def write(chunk: bytes) -> None:
            budget.spend(len(chunk), path)
            file.write(chunk)

        original = fingerprint(path, roots, write)
    if not original.identity:
        copied.unlink()
    return original


@dataclass
class _Budget:
    remaining: int

    def spend(self, size: int, path: str) -> None:
        self.remaining -= size
        if self.remaining < 0:
            raise too_large(path)


def _not_copied(error: OSError) -> StorageError:
    return StorageError(f"What is to be judged could not be copied: {error.strerror}; nothing was judged")
