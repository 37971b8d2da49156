"""Which program a name stands for. A project never supplies one, wherever PATH points."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from deepwork.errors import ProgramMissing


def project_folders(project: Path) -> tuple[Path, ...]:
    """Give the folders whose files a repository brings: the project, and the top level of its working tree."""
    root = Path(os.path.realpath(project))
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), root)
    return (root, top)


def is_of_project(path: str | Path, project: Path) -> bool:
    """Say whether a path leads into the project. The environment that runs us is its user's choice, also in there."""
    resolved = Path(os.path.realpath(path))
    if resolved.is_relative_to(os.path.realpath(sys.prefix)):
        return False
    return any(resolved.is_relative_to(folder) for folder in project_folders(project))


def cleaned_path(environment: Mapping[str, str], project: Path) -> str:
    """Give PATH without entries that are relative or lead into the project, for a search and for children.

    `npx` and the like put a folder of the project first. Of the environment that runs us only `bin` stays.
    """
    own_bin = os.path.join(os.path.realpath(sys.prefix), "bin")
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(
        folder
        for folder in folders
        if os.path.isabs(folder) and (os.path.realpath(folder) == own_bin or not _leads_into(folder, project))
    )


def find_program(name: str, environment: Mapping[str, str], project: Path) -> str:
    """Give the absolute path of a program.

    Args:
        name: Its name, which is looked for in PATH, or its path; a relative one starts at the project.
        environment: Its PATH is searched.
        project: The folder whose files may not run.

    Raises:
        ProgramMissing: There is none, or only one of the project.
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


def _leads_into(folder: str, project: Path) -> bool:
    resolved = Path(os.path.realpath(folder))
    return any(resolved.is_relative_to(outer) for outer in project_folders(project))
