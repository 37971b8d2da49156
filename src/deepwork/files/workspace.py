"""The places of one project.

They stand here and not beside the composition root, because stores, the gate and the engine need the places of a
project, but never what joins its parts.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from deepwork.files.durable import replace_in
from deepwork.files.paths import open_folder


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

    @property
    def output_roots(self) -> tuple[Path, ...]:
        """The folders in which outputs may lie, the project first."""
        return (self.root, *self.extra_roots)

    def shown(self, path: Path) -> str:
        """A path as people and agents read it: relative to the project where it lies in it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def prepare_state_dir(self) -> None:
        """Make the state folder: private, durable, and outside of git's sight.

        Raises:
            PathRefused: The folder is a link that leads out of the project.
            OSError: It cannot be made.
        """
        with open_folder(self.state_dir, inside=self.root, create=True) as folder:
            if stat.S_IMODE(os.fstat(folder).st_mode) != 0o700:
                os.fchmod(folder, 0o700)
            try:
                os.stat(".gitignore", dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                replace_in(folder, ".gitignore", b"*\n", previous=None)
