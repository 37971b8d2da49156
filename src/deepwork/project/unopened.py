"""A project that is opened when something needs its plugins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deepwork.project.access import Project

if TYPE_CHECKING:
    from deepwork.project.project import Project as WholeProject


def project_at(root: str | Path) -> Project:
    """Return the project of a folder, for a command. Nothing is read, and no plugin is loaded, before it is needed.

    Args:
        root: The project's folder.
    """

    def opened() -> WholeProject:
        from deepwork.project.project import Project as WholeProject

        return WholeProject(root)

    return Project(root, opened)
