"""The places of one project.

They are not in the room `project`, because stores, the gate and the engine need these places, and may not import what
joins the parts of a project.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from deepwork.paths.folder import Folder

IGNORE_ALL = b"*\n"
MAX_IGNORE = 64 * 1024


@dataclass(frozen=True)
class Workspace:
    """The places of one project. `root` is absolute and free of links."""

    root: Path
    extra_roots: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        return self.root / ".deepwork"

    @property
    def state_dir(self) -> Path:
        return self.home / "tmp"

    @property
    def config_file(self) -> Path:
        return self.home / "config.yml"

    @cached_property
    def output_roots(self) -> tuple[Path, ...]:
        """The folders in which outputs may lie, the project first."""
        return (self.root, *self.extra_roots)

    def shown(self, path: Path) -> str:
        """A path as people and agents read it: relative to the project if it lies in the project."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def prepare_state_dir(self) -> None:
        """Make the state folder: private, durable, and ignored by git.

        Raises:
            PathRefused: The folder is a link that leads out of the project.
            OSError: It cannot be made.
        """
        with Folder.open(self.state_dir, inside=self.root, create=True) as folder:
            if stat.S_IMODE(os.fstat(folder.descriptor).st_mode) != 0o700:
                os.fchmod(folder.descriptor, 0o700)
            # A repository may bring a file of its own that lets sessions into a commit.
            if not _ignores_all(folder):
                folder.replace(".gitignore", IGNORE_ALL, synced=False)


def _ignores_all(folder: Folder) -> bool:
    try:
        return folder.read(".gitignore", limit=MAX_IGNORE) == IGNORE_ALL
    except OSError:
        return False
