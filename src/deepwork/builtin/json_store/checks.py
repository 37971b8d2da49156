"""What `deepwork doctor` says of the folder of sessions, beside what it says of any store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

import anyio

from deepwork.api import Finding, Git, Level, Workspace
from deepwork.errors import GitError


def folder_findings(workspace: Workspace) -> Iterator[Finding]:
    """Yield who else may read the folder, whether it can be written to, and whether git carries it."""
    problems = [*_problems(workspace)]
    shown = workspace.shown(workspace.state_dir)
    yield from problems or [Finding(Level.OK, f"nobody else may read {shown}, and git does not carry it")]


def _problems(workspace: Workspace) -> Iterator[Finding]:
    folder, shown = workspace.state_dir, workspace.shown(workspace.state_dir)
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield Finding(Level.WARNING, f"{shown} can be read by others", f"chmod 700 {folder}")
    if folder.is_dir() and not os.access(folder, os.W_OK):
        text = f"nothing can be written into {shown}, so no session can be saved"
        yield Finding(Level.ERROR, text, "make it writable; is its file system mounted read-only?")
    tracked = anyio.run(_tracked, workspace)
    if tracked:
        text = f"git tracks {len(tracked)} files of .deepwork/tmp: foreign sessions may come with each pull"
        yield Finding(Level.WARNING, text, "git rm -r --cached .deepwork/tmp")


async def _tracked(workspace: Workspace) -> list[str]:
    """List the files of the folder that git tracks; none where git cannot tell."""
    try:
        git = await Git.open(workspace.root, os.environ)
        return await git.paths("ls-files", "-z", "--cached", "--", ".deepwork/tmp") if git else []
    except GitError:
        return []
