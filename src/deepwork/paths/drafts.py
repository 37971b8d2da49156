"""What people have begun to write, kept outside of the project."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from deepwork.errors import PathRefused
from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import project_name

FOLDER = "drafts"
MAX_DRAFT = 4 * 1024**2


class Drafts:
    """The drafts of one project: files that their owner alone can read.

    Args:
        state: The folder of the user's state.
        project: The project's folder.
    """

    def __init__(self, state: Path, project: Path) -> None:
        self._state = state
        self._folder = state / FOLDER / project_name(project)

    def read(self, name: str) -> bytes | None:
        """Return a draft; None if there is none that can be read."""
        with suppress(OSError), Folder.open(self._folder, inside=self._state) as folder:
            return folder.read(name, limit=MAX_DRAFT)
        return None

    def write(self, name: str, content: bytes | None) -> None:
        """Keep a draft; None removes it.

        Raises:
            OSError: It is as it was.
        """
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        with Folder.open(self._folder, inside=self._state, create=True) as folder:
            if content is not None:
                folder.replace(name, content)
            else:
                with suppress(FileNotFoundError):
                    folder.remove(name)

    def prune(self, needed: Collection[str], *, older_than: float) -> int:
        """Remove the drafts that were written before so many days, except the needed ones; return how many."""
        removed = 0
        with suppress(OSError, PathRefused), Folder.open(self._folder, inside=self._state) as folder:
            folder.remove_leftovers()
            for name in folder.names():
                with suppress(OSError):
                    if name not in needed and folder.status(name).st_mtime < time.time() - older_than * 86400:
                        folder.remove(name)
                        removed += 1
        return removed
