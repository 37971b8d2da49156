"""What a file was like at one moment: its mode, and the id that git gives its content."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

MAX_FILES = 20_000
MAX_BYTES = 256 * 1024 * 1024

# A file whose content was not read, because it is too large or may not be read. Two of them never count as equal.
UNREAD = "unread"
# A folder that is a git repository of its own.
REPOSITORY = "repository"

_CHUNK = 1024 * 1024


class StateReader:
    """Reads the states of files below a folder, up to a number of bytes.

    Attributes:
        unread: How many files exist but were not read.
    """

    def __init__(self, top: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.unread = 0
        self._top = os.fsencode(top)
        self._bytes_left = max_bytes
        self._real_folders: dict[bytes, bool] = {}

    def state(self, path: str, algorithm: str = "sha1") -> str | None:
        """Return the state of a file; None if it does not exist.

        Args:
            path: The file, relative to the folder; `name/` is a repository.
            algorithm: The hash of git's object ids in this repository.
        """
        name = os.path.join(self._top, os.fsencode(path))
        if path.endswith("/"):
            return REPOSITORY if os.path.isdir(name) else None
        try:
            if not self._is_real(os.path.dirname(name)):
                return None
            mode = os.lstat(name).st_mode
            if stat.S_ISLNK(mode):
                return f"120000 {_blob_id(os.readlink(name), algorithm)}"
            if stat.S_ISREG(mode):
                return f"{100755 if mode & stat.S_IXUSR else 100644} {self._hash_file(name, algorithm)}"
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, _TooLarge):
            self.unread += 1
            return UNREAD
        return None

    def _is_real(self, folder: bytes) -> bool:
        """True if no part of the path of a folder is a link; behind a link git sees no files."""
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder) == folder
        return self._real_folders[folder]

    def _hash_file(self, name: bytes, algorithm: str) -> str:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._bytes_left:
                raise _TooLarge
            self._bytes_left -= size
            digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest()


class _TooLarge(Exception):
    pass


def _blob_id(content: bytes, algorithm: str) -> str:
    return hashlib.new(algorithm, b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()
