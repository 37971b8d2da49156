"""Files of a project that a command names: read once, and run from a private copy of the bytes read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deepwork.errors import PathRefused
from deepwork.paths.paths import open_regular
from deepwork.paths.private_folders import private_folder
from deepwork.programs.programs import is_of_project

MAX_FILE = 4 * 1024 * 1024


@dataclass(frozen=True)
class ProjectFile:
    """A file as it was read: its path in the project, and whether it may be executed.

    Of the program of a virtual environment, which is a link that leads out of the project, `content` is where it leads;
    it runs where it is, because a copy would not find the environment.
    """

    path: str
    content: bytes
    executable: bool
    is_link: bool = False

    @property
    def digest(self) -> str:
        return f"sha256:{sha256(self.content).hexdigest()}"


def named_files(arguments: Sequence[str], project: Path) -> dict[int, ProjectFile]:
    """Read the files of the project that arguments name, by the number of the argument.

    A program without a `/` is looked for in PATH, so it names none; of `--option=path` the path counts.

    Raises:
        PathRefused: An argument names a file of the project that leads out of it, cannot be read, or is too large.
    """
    files: dict[int, ProjectFile] = {}
    for number, argument in enumerate(arguments):
        name = _file_part(argument)
        if number or os.sep in name:
            link = None if number else _environment_link(name, project)
            try:
                file = link or _read(name, project)
            except OSError as error:
                raise PathRefused(f"{name!r} cannot be read: {error.strerror}") from error
            if file:
                files[number] = file
    return files


@contextmanager
def private_copies(arguments: Sequence[str], files: Mapping[int, ProjectFile]) -> Iterator[list[str]]:
    """Yield arguments that name private copies of these files, which are removed with the block.

    The copies lie to each other as the files do, so a named script can load another one.
    """
    copied_files = {number: file for number, file in files.items() if not file.is_link}
    if not copied_files:
        yield list(arguments)
        return
    with private_folder() as folder:
        copied = list(arguments)
        for number, file in copied_files.items():
            path = os.path.join(folder, file.path)
            _write(path, file)
            argument = arguments[number]
            copied[number] = argument.removesuffix(_file_part(argument)) + path
        yield copied


def _file_part(argument: str) -> str:
    return argument.partition("=")[2] if argument.startswith("-") else argument


def _environment_link(name: str, project: Path) -> ProjectFile | None:
    """Return the program of a virtual environment in the project, if it is a link that leads out of the project."""
    root = os.path.realpath(project)
    path = os.path.normpath(os.path.join(root, name))
    folder, base = os.path.split(path)
    is_in_environment = os.path.isfile(os.path.join(os.path.dirname(folder), "pyvenv.cfg"))
    if not (is_in_environment and os.path.islink(path) and Path(os.path.realpath(folder)).is_relative_to(root)):
        return None
    target = os.path.realpath(path)
    if is_of_project(target, project) or not os.path.isfile(target):
        return None
    words = f"a link: {os.readlink(path)}, which is {target}\n"
    place = os.path.relpath(os.path.join(folder, base), root)
    return ProjectFile(place, os.fsencode(words), executable=True, is_link=True)


def _read(name: str, project: Path) -> ProjectFile | None:
    """Read a file if it is one of the project; None if the argument names none."""
    root = Path(os.path.realpath(project))
    path = os.path.join(root, name)
    try:
        if not name or not os.path.isfile(path):
            return None
    except ValueError:  # a NUL
        return None
    resolved = Path(os.path.realpath(path))
    if not is_of_project(resolved, root):
        if Path(os.path.normpath(path)).is_relative_to(root) and not resolved.is_relative_to(root):
            raise PathRefused(f"{name!r} is a link that leads out of the project")
        return None
    if not resolved.is_relative_to(root):
        raise PathRefused(f"{name!r} lies in the repository, but outside of the project")
    with open_regular(str(resolved), [root]) as (_, descriptor), os.fdopen(os.dup(descriptor), "rb") as opened:
        content = opened.read(MAX_FILE + 1)
        mode = os.fstat(descriptor).st_mode
    if len(content) > MAX_FILE:
        raise PathRefused(f"{name!r} is larger than {MAX_FILE:,} bytes")
    return ProjectFile(str(resolved.relative_to(root)), content, bool(mode & stat.S_IXUSR))


def _write(path: str, file: ProjectFile) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o700 if file.executable else 0o600), "wb") as copy:
        copy.write(file.content)
