"""What files of a project held in its last commit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import anyio

from deepwork.errors import GitError
from deepwork.programs.git import Git

SECONDS = 5.0


async def committed(root: Path, paths: Sequence[str]) -> dict[str, bytes]:
    """Return it by their paths; nothing of files that git does not know, or cannot say in time."""
    relative = [path for path in paths if not os.path.isabs(path) and "\n" not in path]
    try:
        with anyio.move_on_after(SECONDS):
            if relative and (git := await Git.open(root, os.environ)):
                names = "".join(f"HEAD:./{path}\n" for path in relative)
                return _contents(relative, await git.run("cat-file", "--batch", stdin=os.fsencode(names)))
    except GitError:
        pass
    return {}


def _contents(paths: Sequence[str], answer: bytes) -> dict[str, bytes]:
    """Read what `git cat-file --batch` has printed: a line for each name, and below it the content of a known one."""
    contents: dict[str, bytes] = {}
    for path in paths:
        line, _, answer = answer.partition(b"\n")
        words = line.split(b" ")
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            if words[1] == b"blob":
                contents[path] = answer[:size]
            answer = answer[size + 1 :]
    return contents
