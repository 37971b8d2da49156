"""People at the terminal of a tortured project, for which each of their commands opens it anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio

from deepwork.api import Project, project_at
from deepwork.ports.inbox import Answerer

PERSON = Answerer(user="torture", terminal="/dev/pts/0")
Result = TypeVar("Result")


def in_project(root: Path, act: Callable[[Project], Awaitable[Result]]) -> Result:
    """Open a project, act there, and close it."""

    async def main() -> Result:
        project = project_at(root)
        try:
            return await act(project)
        finally:
            await project.close()

    return anyio.run(main)
