"""Fingerprints of files, so that a verdict holds for the contents that were judged and no others."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from deepwork.errors import OutputError, PathRefused
from deepwork.models.outputs import ListedFile
from deepwork.paths.paths import describe, open_regular

MAX_BYTES = 1024**3
_CHUNK = 256 * 1024


class Fingerprint(NamedTuple):
    """A file at one moment.

    `identity` differs even if another file was put in its place and taken away again: it is that of the file, and that
    of every folder and link on the way to it.
    """

    digest: str
    identity: tuple[tuple[int, ...], ...] = ()


Fingerprints = Mapping[str, Fingerprint]


def take_fingerprints(paths: Iterable[str], roots: Sequence[Path]) -> Fingerprints:
    """Read files whole, and keep what tells them from any others."""
    return {path: fingerprint(path, roots) for path in dict.fromkeys(paths)}


def digest_of(*parts: object) -> str:
    """Digest several values so that no part can pass for another."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def digests(fingerprints: Fingerprints, files: Iterable[ListedFile]) -> list[tuple[str, str]]:
    """Return path and digest of each of these files."""
    return [(path, fingerprints[path].digest) for path, _ in files]


def changed_files(before: Fingerprints, after: Fingerprints) -> list[str]:
    """Name the files that are not what they were."""
    return [path for path in before if before[path] != after[path]]


def fingerprint(path: str, roots: Sequence[Path], write: Callable[[bytes], object] | None = None) -> Fingerprint:
    """Open a file in one of these folders, at the first of which a relative path starts, and read it whole.

    `write` gets the content in parts.

    Raises:
        OutputError: It is too large.
    """
    try:
        with open_regular(path, roots) as (_, descriptor):
            return opened_fingerprint(descriptor, path, roots[0], write)
    except FileNotFoundError:
        return Fingerprint("not found")
    except (PathRefused, OSError) as error:
        return Fingerprint(describe(error))


def opened_fingerprint(
    descriptor: int, path: str, root: Path, write: Callable[[bytes], object] | None = None
) -> Fingerprint:
    """Read an opened file whole. What tells it from others is taken of the very bytes that `write` gets.

    Raises:
        OutputError: It is too large.
    """
    if os.fstat(descriptor).st_size > MAX_BYTES:
        raise too_large(path)
    try:
        return Fingerprint(content_digest(descriptor, write), identity(descriptor, path, root))
    except OSError as error:
        return Fingerprint(describe(error))


def content_digest(descriptor: int, write: Callable[[bytes], object] | None = None) -> str:
    """Read an opened file whole, and return the digest of its content, which `write` gets in parts.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    while chunk := os.read(descriptor, _CHUNK):
        digest.update(chunk)
        if write:
            write(chunk)
    return f"sha256:{digest.hexdigest()}"


def too_large(path: str) -> OutputError:
    """Return the error for files too large to be judged; a file may have holes, and be larger than any disk."""
    return OutputError(
        f"With {path!r}, the files that are to be judged have more than {MAX_BYTES:,} bytes",
        hint="Submit what a reviewer can read.",
    )


def identity(descriptor: int, path: str, root: Path) -> tuple[tuple[int, ...], ...]:
    """Return what tells an opened file, and every folder and link on the way to it, from any put in its place."""
    parts: list[tuple[int, ...]] = []
    for status in (os.fstat(descriptor), *map(os.lstat, (root / path).parents)):
        # The size and the times of a folder change with use.
        is_folder = stat.S_ISDIR(status.st_mode)
        contents = () if is_folder else (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        parts.append((status.st_dev, status.st_ino, *contents))
    return tuple(parts)
