"""Which program a name stands for. A project never supplies one, wherever PATH points."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from deepwork.errors import ProgramMissing


def project_folders(project: Path) -> tuple[Path, ...]:
    """Return the folders whose files a repository brings: the project, and the top level of its working tree."""
    root = Path(os.path.realpath(project))
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), root)
    return (root, top)


def is_of_project(path: str | Path, project: Path) -> bool:
    """True if a path leads into the project, except into the environment that runs us: that is its user's choice."""
    resolved = Path(os.path.realpath(path))
    if resolved.is_relative_to(os.path.realpath(sys.prefix)):
        return False
    return any(map(resolved.is_relative_to, project_folders(project)))


def cleaned_path(environment: Mapping[str, str], project: Path) -> str:
    """Return PATH without entries that are relative or lead into the project, for a search and for children.

    `npx` and the like put a folder of the project first. Of the environment that runs us only `bin` stays.
    """
    own_bin = os.path.join(os.path.realpath(sys.prefix), "bin")
    refused = project_folders(project)
    folders = []
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        resolved = os.path.realpath(folder)
        if os.path.isabs(folder) and (resolved == own_bin or not any(map(Path(resolved).is_relative_to, refused))):
            folders.append(folder)
    return os.pathsep.join(folders)


def find_program(name: str, environment: Mapping[str, str], project: Path) -> str:
    """Return the absolute path of a program.

    Args:
        name: Its name, which is looked for in PATH, or its path; a relative one starts at the project.
        environment: Its PATH is searched.
        project: The folder whose files may not run.

    Raises:
        ProgramMissing: It does not exist, or lies in the project.
    """
    if os.sep not in name:
        program = shutil.which(name, path=cleaned_path(environment, project))
        if program is None:
            raise ProgramMissing(
                f"{name!r} cannot be started: No such file or directory in PATH, whose folders in the project are left "
                "out"
            )
    else:
        program = os.path.join(project, name)
    if is_of_project(program, project):
        raise ProgramMissing(f"{name!r} cannot be started: it lies in the project, so a repository may have brought it")
    return program
