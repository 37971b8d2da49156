"""git in the working tree of a project, as one call of this plugin uses it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from deepwork.api import Git


class WorkingTree(Git):
    """A working tree that does not change while one call looks at it."""

    def __init__(self, root: Path, environment: Mapping[str, str], **options: Any) -> None:
        super().__init__(root, environment, **options)
        self._untracked: list[str] | None = None
        self._lock = anyio.Lock()

    async def untracked(self) -> list[str]:
        """List what is neither tracked nor ignored; names of repositories inside the project end with `/`.

        The search for rules and the search for changes run at the same time and both need the list. It is slow in
        large projects, so git is asked for it once.

        Raises:
            GitError: git gave no answer.
        """
        async with self._lock:
            if self._untracked is None:
                self._untracked = await self.paths("ls-files", "-z", "--others", "--exclude-standard")
            return self._untracked
