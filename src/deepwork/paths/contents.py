"""Contents of files that were reported, and what people have begun to write about them, kept outside of the project."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from hashlib import sha256
from math import inf
from pathlib import Path

from deepwork.errors import PathRefused
from deepwork.paths.folder import is_leftover
from deepwork.paths.user_folders import ProjectFolder

MAX_FILE = 8 * 1024**2
MAX_ATTEMPT = 64 * 1024**2
MAX_TOTAL = 1024**3
MAX_DAYS = 30
MAX_DRAFT = 4 * 1024**2
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class Contents(ProjectFolder):
    """The kept contents of one project: a file for each digest."""

    kind = "attempts"

    def keep(self, digest: str, source: Path) -> bool:
        """Keep the content of a private copy, again if it was kept before. Return whether it is kept.

        Raises:
            OSError: It cannot be written.
        """
        name = _name(digest)
        if name is None:
            return False
        with self.opened(create=True) as folder:
            with suppress(FileNotFoundError):
                folder.status(name)
                os.utime(name, dir_fd=folder.descriptor, follow_symlinks=False)
                return True
            content = source.read_bytes()
            if f"sha256:{sha256(content).hexdigest()}" != digest:
                return False
            folder.replace(name, content)
            return True

    def read(self, digest: str) -> bytes | None:
        """Return a content; None if it is not kept here, or is no longer what its name says."""
        name = _name(digest)
        content = _read(self, name, MAX_FILE) if name else None
        return content if content is not None and sha256(content).hexdigest() == name else None

    def holds(self, digest: str) -> bool:
        """True if a content is kept here; it is not read."""
        name = _name(digest)
        return name is not None and (self.path / name).is_file()

    def prune(self, needed: Iterable[str], *, older_than: float = MAX_DAYS, total: int = MAX_TOTAL) -> int:
        """Remove contents that are no longer needed, the oldest first, and return how many were removed.

        Args:
            needed: The digests that stay however old they are.
            older_than: So many days after it was kept last, a content goes.
            total: So many bytes may stay, if that much is not needed.
        """
        return _pruned(self, {name for name in map(_name, needed) if name}, older_than, total)


class Drafts(ProjectFolder):
    """What people have begun to write in one project."""

    kind = "drafts"

    def read(self, name: str) -> bytes | None:
        """Return a draft, if it can be read."""
        return _read(self, name, MAX_DRAFT)

    def write(self, name: str, content: bytes | None) -> None:
        """Keep a draft; None removes it.

        Raises:
            OSError: It is as it was.
        """
        with self.opened(create=True) as folder:
            if content is not None:
                folder.replace(name, content)
            else:
                with suppress(FileNotFoundError):
                    folder.remove(name)

    def prune(self, needed: Collection[str], *, older_than: float) -> int:
        """Remove the drafts that were written before so many days, except the needed ones; return how many."""
        return _pruned(self, needed, older_than, inf)


def _name(digest: str) -> str | None:
    """Return the name of the file with a content; None if the text is not a digest: a session may hold any text."""
    match = _DIGEST.fullmatch(digest)
    return match[1] if match else None


def _read(kept: ProjectFolder, name: str, limit: int) -> bytes | None:
    with suppress(OSError), kept.opened() as folder:
        return folder.read(name, limit=limit)
    return None


def _pruned(kept: ProjectFolder, needed: Collection[str], older_than: float, total: float) -> int:
    """Remove old files, then the oldest of more than `total` bytes, and what writes that were cut off have left."""
    removed, oldest = 0, time.time() - older_than * 86400
    with suppress(OSError, PathRefused), kept.opened() as folder:
        folder.remove_leftovers()
        files = [(folder.status(name), name) for name in folder.names() if not is_leftover(name)]
        size_left = sum(status.st_size for status, _ in files)
        for status, name in sorted(files, key=lambda file: file[0].st_mtime):
            if name not in needed and (status.st_mtime < oldest or size_left > total):
                with suppress(OSError):
                    folder.remove(name)
                    size_left -= status.st_size
                    removed += 1
    return removed
