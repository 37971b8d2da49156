"""What has changed in a project since a session was last worked on: the branch, the commit, and completed files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from deepwork.errors import PathRefused
from deepwork.gate.fingerprints import take_fingerprints
from deepwork.paths.paths import open_regular
from deepwork.paths.workspace import Workspace
from deepwork.programs.git_head import read_head
from deepwork.text import visible

# Session files are untrusted input: at most this much of what they list is compared.
MAX_COMPARED_BYTES = 64 * 1024 * 1024
MAX_COMPARED = 1000
LISTED = 20


def changes_since(session: Mapping[str, Any], workspace: Workspace) -> str:
    """Tell what is no longer as it was when a session, as JSON, was last worked on; nothing if everything is."""
    lines = [*_git_changes(session["git"], workspace), *_file_changes(session["step_progress"], workspace)]
    return "\n".join(["## Changed since", "", *lines]) if lines else ""


def _git_changes(then: Mapping[str, str | None] | None, workspace: Workspace) -> Iterator[str]:
    now = read_head(workspace.root)
    if then is None or now is None:
        return
    if then["branch"] != now.branch:
        branch = visible(now.branch or "none: HEAD is detached")
        yield f"- The branch is {branch}; it was {visible(then['branch'] or 'none')}."
    if then["commit"] != now.commit:
        yield f"- The commit is {_short(now.commit)}; it was {_short(then['commit'])}."


def _file_changes(steps: Mapping[str, Mapping[str, Any]], workspace: Workspace) -> Iterator[str]:
    digests = {
        path: (step_id, digest)
        for step_id, progress in steps.items()
        if progress["completed_at"]
        for path, digest in progress["digests"].items()
    }
    now = take_fingerprints(_comparable(digests, workspace), workspace.output_roots)
    changed = [(path, digests[path][0]) for path in now if now[path].digest != digests[path][1]]
    for path, step_id in changed[:LISTED]:
        state = "is gone" if now[path].digest == "not found" else "is not what was completed"
        yield f"- {visible(path)} of step {step_id!r} {state}."
    if len(changed) > LISTED:
        yield f"- and {len(changed) - LISTED} more files"


def _comparable(paths: Iterable[str], workspace: Workspace) -> Iterator[str]:
    """Yield the paths in their order as long as there is time to read the files; missing files take none."""
    room = MAX_COMPARED_BYTES
    for path in islice(paths, MAX_COMPARED):
        room -= _size(path, workspace) or 0
        if room < 0:
            return
        yield path


def _size(path: str, workspace: Workspace) -> int | None:
    """Return the size of a file; None if it cannot be read."""
    try:
        with open_regular(path, workspace.output_roots) as (_, descriptor):
            return os.fstat(descriptor).st_size
    except (OSError, PathRefused):
        return None


def _short(commit: str | None) -> str:
    return commit[:12] if commit else "none yet"
