"""Safe paths.

Every path from outside is resolved, must lie in its folder, and is then opened component by component without following
links: the file that was checked is read, even if the path changes meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from deepwork.errors import PathRefused

MAX_PATH_BYTES = 4096
_PART = 64 * 1024

_WINDOWS_FORM = re.compile(r"^([A-Za-z]:|[\\/]{2})")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def resolve_inside(path: str, roots: Sequence[Path]) -> tuple[Path, Path]:
    """Resolve a path from outside; relative ones start at the first root.

    Returns:
        The resolved path, and the resolved root that contains it.

    Raises:
        PathRefused: It is empty, malformed, or lies in none of the roots once links are resolved.
    """
    if not path:
        raise PathRefused("is empty")
    if "\0" in path or _WINDOWS_FORM.match(path):
        raise PathRefused("is not a path of this system")
    try:
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise PathRefused(f"is longer than {MAX_PATH_BYTES:,} bytes")
        first = os.path.realpath(roots[0])
        resolved = without_links(first, path) or Path(os.path.realpath(roots[0] / path))
        for root in map(Path, (first, *map(os.path.realpath, roots[1:]))):
            if resolved.is_relative_to(root):
                return resolved, root
    except (OSError, ValueError):
        raise PathRefused("is not a path of this system") from None
    where = "the project" if len(roots) == 1 else "the project and the allowed roots"
    raise PathRefused(f"lies outside of {where}")


def without_links(folder: str, path: str) -> Path | None:
    """Return where a relative path leads from a resolved folder, if no part of it is a link or `..`; else None.

    Most paths are like that, and need no second look at the folders above.
    """
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts:
        return None
    place = folder
    for part in parts:
        place = os.path.join(place, part)
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return None
        except OSError:  # a missing path is not a link
            break
    return Path(folder, *parts)


def is_utf8(name: str) -> bool:
    """True if the bytes of a file name are UTF-8; for other bytes Python has put surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def describe(error: PathRefused | OSError) -> str:
    """Return why a file cannot be used, without naming a place of this machine."""
    if isinstance(error, OSError):
        return f"cannot be read: {os.strerror(error.errno or 0)}"
    return error.message


@contextmanager
def open_regular(path: str, roots: Sequence[Path], *, within: Path | None = None) -> Iterator[tuple[Path, int]]:
    """Open a regular file inside one of the roots for reading.

    Args:
        path: A relative path starts at the first root.
        roots: The file must lie in one of these folders.
        within: An outer, already resolved folder. The file must lie in it even if a root is replaced by a link
            meanwhile.

    Yields:
        The resolved path and the descriptor, so that check and use see one file.

    Raises:
        FileNotFoundError: There is no such file.
        PathRefused: It lies outside, is not a regular file, or may not be read.
    """
    resolved, root = resolve_inside(path, roots)
    if resolved == root:
        raise PathRefused("is a folder, not a regular file")
    if within and not resolved.is_relative_to(within):
        raise PathRefused("lies outside of the project")
    descriptor = _open_file(resolved, within or root)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise PathRefused(f"is {_kind(mode)}, not a regular file")
        yield resolved, descriptor
    finally:
        os.close(descriptor)


def read_regular(path: str, roots: Sequence[Path], *, limit: int, within: Path | None = None) -> bytes:
    """Read a whole regular file as `open_regular` does; more than `limit` bytes are refused."""
    content = bytearray()
    with open_regular(path, roots, within=within) as (_, descriptor):
        while len(content) <= limit and (part := os.read(descriptor, min(_PART, limit + 1 - len(content)))):
            content += part
    if len(content) > limit:
        raise PathRefused(f"is larger than {limit:,} bytes")
    return bytes(content)


def open_folder(path: Path, inside: Path, *, create: bool) -> int:
    """Open a folder that must lie inside another one; see `Folder.open`."""
    name = str(path.relative_to(inside) if path.is_relative_to(inside) else path)
    try:
        resolved, root = resolve_inside(str(path), [inside])
    except PathRefused as error:
        raise PathRefused(f"the folder {name!r} {error.message}") from None
    try:
        return _walk(root, resolved, create=create)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            blocking = next((parent for parent in resolved.parents if parent.is_file()), None)
            if blocking and blocking.is_relative_to(root):
                name = str(blocking.relative_to(root))
            raise PathRefused(f"{name!r} is not a folder") from None
        raise


def _walk(root: Path, folder: Path, *, create: bool = False) -> int:
    """Open a resolved folder below a root component by component: none may have become a link meanwhile."""
    above = os.open(root, _FOLDER)
    parts = folder.relative_to(root).parts
    for number, part in enumerate(parts, start=1):
        # Made for the owner alone: a mode that is set afterwards comes too late for who has opened it meanwhile.
        mode = 0o700 if number == len(parts) else 0o777
        try:
            below = _open_or_make(part, above, mode) if create else os.open(part, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
        above = below
    return above


def _open_or_make(part: str, parent: int, mode: int) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(part, mode, dir_fd=parent)
        try:
            os.fsync(parent)
        except OSError:
            # The next call must make and sync it anew, and not trust a folder that was never synced.
            with suppress(OSError):
                os.rmdir(part, dir_fd=parent)
            raise
        return os.open(part, _FOLDER, dir_fd=parent)


def _open_file(resolved: Path, root: Path) -> int:
    try:
        folder = _walk(root, resolved.parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise PathRefused("lies in something that is not a folder") from None
        raise _unopened(error) from None
    try:
        return os.open(resolved.name, _FILE, dir_fd=folder)
    except OSError as error:
        raise _unopened(error) from None
    finally:
        os.close(folder)


def _unopened(error: OSError) -> PathRefused | FileNotFoundError:
    if isinstance(error, FileNotFoundError):
        return error
    if error.errno == errno.ELOOP:
        return PathRefused("was swapped for a link while it was opened")
    if error.errno in (errno.ENXIO, errno.ENODEV):
        return PathRefused("is a socket or device, not a regular file")
    return PathRefused(f"cannot be read: {os.strerror(error.errno or 0)}")


def _kind(mode: int) -> str:
    for test, name in ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket")):
        if test(mode):
            return name
    return "a device"
