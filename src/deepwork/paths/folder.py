"""An open folder: files in it are named without a path, so that no link on the way to them can be followed."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from deepwork.errors import StorageError
from deepwork.paths.locks import LOCK_SECONDS, wait_for_lock
from deepwork.paths.paths import open_folder

# A write that was cut off longer ago than this belongs to no process that still lives.
LEFTOVER_SECONDS = 3600.0

# Files of a folder are small; a file from elsewhere may not be.
MAX_READ = 64 * 1024 * 1024

_SUFFIX = ".tmp"


class Folder:
    """An open folder: it stays the same folder even if its path is replaced meanwhile.

    A context manager, which closes it. Every method blocks, follows no link, and raises `OSError` where the system
    refuses.

    Attributes:
        descriptor: For the functions of `os` that take `dir_fd`.
    """

    descriptor: int

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def open(cls, path: Path, *, inside: Path, create: bool = False) -> Self:
        """Open a folder that must lie inside another one.

        Args:
            path: Where it is; a relative path starts at `inside`.
            inside: The folder in which it must lie, once links are resolved.
            create: Make the folder if it does not exist, and those above it.

        Raises:
            PathRefused: It lies outside, or is not a folder.
            FileNotFoundError: It does not exist.
        """
        return cls(open_folder(path, inside, create=create))

    def subfolder(self, name: str) -> Folder:
        """Open a folder in this one; it is made, for its owner only, if it does not exist."""
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        return Folder(os.open(name, flags, dir_fd=self.descriptor))

    def close(self) -> None:
        """Close the folder."""
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def names(self) -> list[str]:
        """List what is in the folder, sorted."""
        return sorted(os.listdir(self.descriptor))

    def status(self, name: str) -> os.stat_result:
        """Return size, times and kind of a file, or of a link itself."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def open_file(self, name: str) -> FileIO:
        """Open a file for reading; opening a pipe does not wait for a writer."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return FileIO(name, opener=lambda _name, _flags: os.open(name, flags, dir_fd=self.descriptor))

    def read(self, name: str, *, limit: int = MAX_READ) -> bytes | None:
        """Read a regular file; None if it does not exist.

        Raises:
            OSError: It has more than `limit` bytes, is not a regular file, or cannot be read.
        """
        try:
            with self.open_file(name) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "Not a regular file", name)
                content = b"" if status.st_size > limit else _read_up_to(file, limit + 1)
                if max(status.st_size, len(content)) > limit:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
                return content
        except FileNotFoundError:
            return None

    def replace(self, name: str, content: bytes, *, synced: bool = True) -> None:
        """Replace a file so that readers see the old content or the new one, never a part.

        Args:
            name: The file, which is made if it does not exist.
            content: What it will hold.
            synced: Return only once the new content would survive a power cut.

        Raises:
            OSError: The file is as it was.
            StorageError: The new content could neither be synced nor taken back.
        """
        previous = self.read(name) if synced else None
        self._write(name, content, synced=synced)
        if synced:
            try:
                self.sync()
            except OSError as error:
                # Syncing again would prove nothing: the kernel may already have dropped the page.
                self.put_back(name, previous, error)
                raise

    def write_beside(self, name: str, content: bytes) -> FileBeside:
        """Write what a file will hold beside it. It is not synced yet.

        Raises:
            OSError: Nothing is left of it.
        """
        return FileBeside(self, name, content)

    def put_back(self, name: str, previous: bytes | None, error: OSError) -> None:
        """Restore the content, or the absence, of a file before a write that could not be synced.

        Raises:
            StorageError: That failed too.
        """
        try:
            if previous is None:
                self.remove(name)
            else:
                self._write(name, previous, synced=True)
        except OSError as second_error:
            raise StorageError(
                f"{name} was written, but could neither be synced ({error.strerror}) nor put back "
                f"({second_error.strerror})",
                hint="A power cut may undo it. Fix the cause, then call again.",
            ) from second_error

    def rename(self, name: str, new_name: str, *, into: Folder | None = None) -> None:
        """Rename a file, or move it into another open folder. Not synced."""
        target = self if into is None else into
        os.replace(name, new_name, src_dir_fd=self.descriptor, dst_dir_fd=target.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file. Not synced."""
        os.unlink(name, dir_fd=self.descriptor)

    def remove_leftovers(self) -> int:
        """Remove what writes that were cut off have left, once no process can be writing it, and count it."""
        removed = 0
        for name in filter(is_leftover, self.names()):
            with suppress(OSError):
                if time.time() - self.status(name).st_mtime >= LEFTOVER_SECONDS:
                    self.remove(name)
                    removed += 1
        return removed

    def sync(self) -> None:
        """Make new, renamed and removed files of this folder durable."""
        os.fsync(self.descriptor)

    @contextmanager
    def locked(self, name: str, *, subject: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Hold an advisory lock on a file of this folder; the kernel frees it when the process dies.

        Not a library's lock: those take paths, and a path can be swapped for a link between check and use.

        Args:
            name: The lock file, which is made if it does not exist.
            subject: What the lock protects, for the error that people read.
            seconds: How long to wait.

        Raises:
            LockHeld: Another process held the lock all the time.
            StorageError: Something else has the file's name.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=self.descriptor)
        except OSError as error:
            raise StorageError(
                f"the lock file {name!r} of {subject} cannot be opened: {error.strerror}; nothing was changed",
                hint="Remove what has this name, then call again.",
            ) from error
        try:
            wait_for_lock(descriptor, subject, seconds)
            yield
        finally:
            os.close(descriptor)

    def _write(self, name: str, content: bytes, *, synced: bool) -> None:
        with self.write_beside(name, content) as beside:
            if synced:
                beside.sync()
            beside.put_in_place()


class FileBeside:
    """The new content of a file, in a file beside it. A context manager, which removes it unless it was put in place.

    Attributes:
        descriptor: Of the open file.
    """

    def __init__(self, folder: Folder, name: str, content: bytes) -> None:
        self._folder = folder
        self._name = name
        self._beside: str | None = f".{name[:200]}.{secrets.token_hex(8)}{_SUFFIX}"  # a name has at most 255 bytes
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(self._beside, flags, 0o600, dir_fd=folder.descriptor)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(self.descriptor, view) :]
        except BaseException:
            self.close()
            raise

    def sync(self) -> None:
        """Make the content durable."""
        os.fsync(self.descriptor)

    def put_in_place(self) -> None:
        """Rename it to the file. The name is durable once the folder is synced."""
        assert self._beside
        self._folder.rename(self._beside, self._name)
        self._beside = None

    def close(self) -> None:
        """Close it, and remove it unless it was put in place."""
        os.close(self.descriptor)
        if self._beside:
            with suppress(OSError):
                self._folder.remove(self._beside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_up_to(file: FileIO, size: int) -> bytes:
    content = bytearray()
    while len(content) < size and (chunk := file.read(size - len(content))):
        content += chunk
    return bytes(content)


def is_leftover(name: str) -> bool:
    """True if a file is the leftover of an interrupted write."""
    return name.startswith(".") and name.endswith(_SUFFIX)
