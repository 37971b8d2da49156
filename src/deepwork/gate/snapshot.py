"""A private copy of the judged files: a reviewer reads the same bytes that are hashed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from io import BufferedWriter
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

import anyio
from anyio import to_thread

from deepwork.errors import StorageError
from deepwork.gate.fingerprints import (
    MAX_BYTES,
    Fingerprint,
    changed_files,
    fingerprint,
    identity,
    opened_fingerprint,
    take_fingerprints,
    too_large,
)
from deepwork.models.outputs import ListedFile
from deepwork.paths.private_folders import private_folder

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OUTSIDE = ".outside-of-the-project"


class Snapshot:
    """Copies of files in a private folder, each at the path that it has below the project.

    The folder is made with the first copy, and removed at the end of the block unless it was handed over.

    Attributes:
        originals: What the copied files were when they were copied.
        copies: What the copies were then.
        is_handed_over: Whether another owner removes them, and not the end of the block.
    """

    def __init__(self) -> None:
        self.originals: dict[str, Fingerprint] = {}
        self.copies: dict[str, Fingerprint] = {}
        self._folder = ExitStack()
        self._copying = Lock()
        self._is_removed = False
        self._root: Path | None = None
        self._remaining = MAX_BYTES
        self.is_handed_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self.is_handed_over:
            await self.remove()

    async def remove(self) -> None:
        """Remove all copies; the thread of a call that was cancelled may still make one."""
        self._is_removed = True
        if self._root or self._copying.locked():
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._remove)

    @property
    def root(self) -> Path:
        """A folder that only its owner can enter.

        Raises:
            StorageError: It cannot be made.
        """
        if self._root is None:
            try:
                self._root = self._folder.enter_context(private_folder())
            except OSError as error:
                raise _not_copied(error) from error
        return self._root

    def add(self, path: str, roots: Sequence[Path], opened: int | None = None) -> Fingerprint:
        """Copy a file that was not copied yet, and return what it was then; what cannot be read has no copy.

        A file that was opened already is read by its descriptor.

        Raises:
            OutputError: With it, the files are too large to be judged.
            StorageError: It cannot be copied.
        """
        with self._copying:
            if self._is_removed:
                raise StorageError("What is to be judged is no longer needed; nothing was judged")
            if path not in self.originals:
                self.originals[path] = self._copy(path, roots, opened)
            return self.originals[path]

    def changed(self, roots: Sequence[Path]) -> list[str]:
        """Return the paths of files that are not what they were when they were copied, or whose copies are not."""
        changed = {*changed_files(self.originals, take_fingerprints(self.originals, roots))}
        changed_copies = {*changed_files(self.copies, take_fingerprints(self.copies, [self.root]))}
        return [path for path in self.originals if path in changed or copy_name(path) in changed_copies]

    def _remove(self) -> None:
        with self._copying:
            self._folder.close()

    def _copy(self, path: str, roots: Sequence[Path], opened: int | None) -> Fingerprint:
        name, root = copy_name(path), self.root
        copied = root / name
        try:
            copied.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(copied, _NEW, 0o400), "wb") as file:
                write = partial(self._write, path, file)
                if opened is None:
                    original = fingerprint(path, roots, write)
                else:
                    original = opened_fingerprint(opened, path, roots[0], write)
                file.flush()
                if original.identity:
                    self.copies[name] = Fingerprint(original.digest, identity(file.fileno(), name, root))
            if not original.identity:
                copied.unlink()
        except OSError as error:
            raise _not_copied(error) from error
        return original

    def _write(self, path: str, file: BufferedWriter, chunk: bytes) -> None:
        self._remaining -= len(chunk)
        if self._remaining < 0:
            raise too_large(path)
        try:
            file.write(chunk)
        except OSError as error:  # otherwise it would pass for one of the file that is read
            raise _not_copied(error) from error


class Copies(NamedTuple):
    """Other copies of the judged files, below this folder as in a snapshot."""

    root: Path


def listed_copies(files: Iterable[ListedFile]) -> list[ListedFile]:
    """Return files by the paths of their copies."""
    return [ListedFile(copy_name(path), output) for path, output in files]


def copy_name(path: str) -> str:
    """Return where below a snapshot the copy of a file lies; a file outside of the project has an absolute path."""
    return os.path.join(_OUTSIDE, path.lstrip("/")) if path.startswith("/") else path


def _not_copied(error: OSError) -> StorageError:
    return StorageError(f"What is to be judged could not be copied: {error.strerror}; nothing was judged")
