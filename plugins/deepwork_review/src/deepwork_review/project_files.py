"""Files of the project that rules name, and why one cannot be used, in the same words everywhere."""

from __future__ import annotations

from pathlib import Path

from deepwork.api import read_regular
from deepwork.errors import PathRefused


class UnusableFile(Exception):
    """A file cannot be used. The text follows the file's name in a message, and names no place of this machine."""


class MissingFile(UnusableFile):
    """The file does not exist."""


def read_file(root: Path, path: str, *, limit: int) -> bytes:
    """Read a file of the project.

    Raises:
        UnusableFile: It is missing, too large, not a regular file, outside of the project, or cannot be read.
    """
    try:
        return read_regular(path, [root], limit=limit)
    except FileNotFoundError:
        raise MissingFile("does not exist") from None
    except PathRefused as error:
        raise UnusableFile(error.message) from None
    except OSError as error:
        raise UnusableFile(error.strerror or "cannot be read") from None


def read_text(root: Path, path: str, *, limit: int) -> str:
    """Read a text file of the project, as `read_file` does.

    Raises:
        UnusableFile: It cannot be read, or is not UTF-8.
    """
    try:
        return read_file(root, path, limit=limit).decode()
    except UnicodeDecodeError:
        raise UnusableFile("is not UTF-8") from None
