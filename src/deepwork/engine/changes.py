"""What has changed in a project since a session was last worked on: the branch, the commit, and completed files."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork.errors import PathRefused
from deepwork.files.git_head import read_head
from deepwork.files.paths import open_regular
from deepwork.files.workspace import Workspace
from deepwork.gate.fingerprints import take_fingerprints
from deepwork.models.outputs import Outputs
from deepwork.models.sessions import GitPlace, Session

# Of more files than these, and of larger ones, nothing is noted: a call must not wait for them.
MAX_FILES = 50
MAX_BYTES = 4 * 1024 * 1024
LISTED = 20


def git_place(workspace: Workspace) -> GitPlace | None:
    """Read branch and commit of the project; None if it is in no repository."""
    head = read_head(workspace.root)
    return GitPlace(branch=head.branch, commit=head.commit) if head else None


def output_digests(outputs: Outputs, workspace: Workspace) -> dict[str, str]:
    """Give what tells the contents of completed files from any others, by path."""
    paths = [path for path in _paths(outputs)[:MAX_FILES] if _is_small(path, workspace)]
    fingerprints = take_fingerprints(paths, workspace.output_roots)
    return {path: fingerprint.digest for path, fingerprint in fingerprints.items()}


def changes_since(session: Session, workspace: Workspace) -> str:
    """Tell what is no longer as it was when the session was last worked on; nothing if everything is."""
    lines = [*_git_changes(session.git, git_place(workspace)), *_file_changes(session, workspace)]
    return "\n".join(["## Changed since", "", *lines]) if lines else ""


def _git_changes(then: GitPlace | None, now: GitPlace | None) -> Iterator[str]:
    if then is None or now is None:
        return
    if then.branch != now.branch:
        yield f"- The branch is {now.branch or 'none: HEAD is detached'}; it was {then.branch or 'none'}."
    if then.commit != now.commit:
        yield f"- The commit is {_short(now.commit)}; it was {_short(then.commit)}."


def _file_changes(session: Session, workspace: Workspace) -> Iterator[str]:
    digests = {
        path: (progress.step_id, digest)
        for progress in session.step_progress.values()
        if progress.completed_at
        for path, digest in progress.digests.items()
    }
    now = take_fingerprints(digests, workspace.output_roots)
    changed = [(path, step_id) for path, (step_id, digest) in digests.items() if now[path].digest != digest]
    for path, step_id in changed[:LISTED]:
        state = "is gone" if now[path].digest == "not found" else "is not what was completed"
        yield f"- {path} of step {step_id!r} {state}."
    if len(changed) > LISTED:
        yield f"- and {len(changed) - LISTED} more files"


def _paths(outputs: Outputs) -> list[str]:
    values = [[value] if isinstance(value, str) else list(value) for value in outputs.values()]
    return [path for paths in values for path in paths]


def _is_small(path: str, workspace: Workspace) -> bool:
    try:
        with open_regular(path, workspace.output_roots) as (resolved, _):
            return resolved.stat().st_size <= MAX_BYTES
    except (OSError, PathRefused):
        return False


def _short(commit: str | None) -> str:
    return commit[:12] if commit else "none yet"
