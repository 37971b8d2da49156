"""Contents of files that were reported, kept outside of the project by their digests."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import project_name

MAX_FILE = 8 * 1024**2
MAX_ATTEMPT = 64 * 1024**2
MAX_TOTAL = 1024**3
MAX_DAYS = 30
FOLDER = "attempts"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class Contents:
    """The kept contents of one project: a file for each digest, readable by its owner alone.

    Args:
        state: The folder of the user's state.
        project: The project's folder.
    """

    def __init__(self, state: Path, project: Path) -> None:
        self._state = state
        self._folder = state / FOLDER / project_name(project)

    def keep(self, digest: str, source: Path) -> bool:
        """Keep the content of a private copy, again if it was kept before. Return whether it is kept.

        Raises:
            OSError: It cannot be written.
        """
        name = _name(digest)
        if name is None:
            return False
        with self._opened(create=True) as folder:
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
        if name is None:
            return None
        try:
            with self._opened() as folder:
                content = folder.read(name, limit=MAX_FILE)
        except OSError:
            return None
        return content if content is not None and sha256(content).hexdigest() == name else None

    def holds(self, digest: str) -> bool:
        """True if a content is kept here; it is not read."""
        name = _name(digest)
        return name is not None and (self._folder / name).is_file()

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return sum(size for size, _ in self._files().values())

    def prune(self, needed: Collection[str], *, older_than: float = MAX_DAYS, total: int = MAX_TOTAL) -> int:
        """Remove contents that are no longer needed, the oldest first, and return how much was removed.

        Args:
            needed: The digests that stay however old they are.
            older_than: So many days after it was kept last, a content goes.
            total: So many bytes may stay, if that much is not needed.
        """
        kept = {name for name in map(_name, needed) if name}
        files = self._files()
        size_left, oldest = sum(size for size, _ in files.values()), time.time() - older_than * 86400
        removed = 0
        for name, (size, moment) in sorted(files.items(), key=lambda item: item[1][1]):
            if name in kept or (moment >= oldest and size_left <= total):
                continue
            with suppress(OSError), self._opened() as folder:
                folder.remove(name)
                size_left -= size
                removed += 1
        return removed

    def _files(self) -> Mapping[str, tuple[int, float]]:
        """Return size and time of each kept content, and remove what writes that were cut off have left."""
        try:
            with self._opened() as folder:
                folder.remove_leftovers()
                names = [name for name in folder.names() if _DIGEST.fullmatch(f"sha256:{name}")]
                statuses = {name: folder.status(name) for name in names}
        except OSError:
            return {}
        return {name: (status.st_size, status.st_mtime) for name, status in statuses.items()}

    def _opened(self, *, create: bool = False) -> Folder:
        if create:
            self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Folder.open(self._folder, inside=self._state, create=create)


def _name(digest: str) -> str | None:
    """Return the name of the file with a content; None if the text is not a digest: a session may hold any text."""
    match = _DIGEST.fullmatch(digest)
    return match[1] if match else None
