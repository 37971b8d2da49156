"""Writes that survive a power cut, and of which readers see all or nothing."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from deepwork.errors import StorageError
from deepwork.files.paths import open_folder

_BESIDE = ".tmp"


def write_durably(path: Path, content: bytes, *, inside: Path) -> None:
    """Replace a file so that readers see the old or the new one, and the new one survives a power cut.

    Written beside, flushed, synced, renamed, folder synced. The folder must exist.

    Raises:
        PathRefused: The folder lies outside of `inside`.
        OSError: It failed, and the file is as it was.
    """
    with open_folder(path.parent, inside=inside) as folder:
        replace_in(folder, path.name, content, previous=read_in(folder, path.name))


def read_in(folder: int, name: str) -> bytes | None:
    """Read a file of an open folder, without following a link; None if there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def replace_in(folder: int, name: str, content: bytes, *, previous: bytes | None) -> None:
    """Do the work of `write_durably` in an open folder, where `previous` is what the file holds now.

    A failed sync is never repeated: the kernel may already have dropped the page. If it is that of the folder,
    after the rename, the previous content is put back.
    """
    _write_and_rename(folder, name, content)
    try:
        os.fsync(folder)
    except OSError as error:
        _put_back(folder, name, previous, error)
        raise


def _put_back(folder: int, name: str, previous: bytes | None, error: OSError) -> None:
    try:
        if previous is None:
            os.unlink(name, dir_fd=folder)
        else:
            _write_and_rename(folder, name, previous)
    except OSError as second:
        raise StorageError(
            f"{name} was written, but could neither be synced ({error.strerror}) nor put back ({second.strerror})",
            hint="A power cut may undo it. Mend the cause, then call again.",
        ) from second


def is_leftover(name: str) -> bool:
    """Say whether a file is what a write has left that was cut off."""
    return name.startswith(".") and name.endswith(_BESIDE)


def _write_and_rename(folder: int, name: str, content: bytes) -> None:
    beside = f".{name}.{secrets.token_hex(8)}{_BESIDE}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, 0o600, dir_fd=folder)
    try:
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise
