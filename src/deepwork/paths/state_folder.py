"""The state folder of a project, kept open between uses."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from deepwork.paths.folder import Folder
from deepwork.paths.workspace import Workspace

Identity = tuple[tuple[int, int], ...]
FileStamp = tuple[int, int, int, int]


class _KeptFolder(Folder):
    """A folder that is closed with its last user; leaving its context leaves it open."""

    def close(self) -> None:
        """Leave it open for others."""

    def __del__(self) -> None:
        super().close()


class StateFolder:
    """Opens the state folder of a project once, and anew when its path leads to another folder.

    Opening it safely means to resolve its path and to open each folder on the way. A folder that is kept is the same
    one as long as it still stands where it was found, below folders that are not links. May be used by several threads.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._paths = (str(workspace.home), str(workspace.state_dir))
        self._kept: tuple[Identity, Folder] | None = None
        self._ignored: FileStamp | None = None

    def open(self) -> Folder:
        """Return the open folder.

        Raises:
            PathRefused: It lies outside of the project, or is not a folder.
            FileNotFoundError: It does not exist.
        """
        identity = self._identity()
        kept = self._kept
        if kept and kept[0] == identity:
            return kept[1]
        folder = _KeptFolder(Folder.open(self._workspace.state_dir, inside=self._workspace.root).descriptor)
        status = os.fstat(folder.descriptor)
        if identity and identity[-1] == (status.st_dev, status.st_ino):
            self._kept = identity, folder
        return folder

    def prepared(self) -> Folder:
        """Return the open folder, ready to be written to: made if it is missing, private, ignored by git.

        Raises:
            PathRefused: It lies outside of the project, or is not a folder.
            OSError: It cannot be made.
        """
        with suppress(FileNotFoundError):
            folder = self.open()
            if self._ignored and self._ignored == _ignore_stamp(folder) and _is_private(folder):
                return folder
        self._workspace.prepare_state_dir()
        folder = self.open()
        self._ignored = _ignore_stamp(folder)
        return folder

    def close(self) -> None:
        """Let go of the folder; the next use opens it again."""
        self._kept = None

    def _identity(self) -> Identity | None:
        """Return what tells the folders on the way from all others; None if one is missing, or is a link."""
        identity = []
        for path in self._paths:
            try:
                status = os.lstat(path)
            except OSError:
                return None
            if not stat.S_ISDIR(status.st_mode):
                return None
            identity.append((status.st_dev, status.st_ino))
        return tuple(identity)


def _is_private(folder: Folder) -> bool:
    return stat.S_IMODE(os.fstat(folder.descriptor).st_mode) == 0o700


def _ignore_stamp(folder: Folder) -> FileStamp | None:
    with suppress(OSError):
        status = folder.status(".gitignore")
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return None
