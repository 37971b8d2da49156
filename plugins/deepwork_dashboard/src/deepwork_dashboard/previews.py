"""A look into a file that a step has reported: text, and not more of it than a page can show."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from anyio import to_thread

from deepwork.api import Session, Workspace
from deepwork.errors import PathRefused
from deepwork.models.sessions import StepProgress
from deepwork.paths.paths import open_regular
from deepwork_dashboard.answers import Mapped, NotThere
from deepwork_dashboard.entries import judged_digest, reported_files

MAX_FILE = 1024 * 1024
MAX_TEXT = 64 * 1024


async def preview(session: Session, step_id: str, path: str, workspace: Workspace) -> Mapped:
    """Show a file of a step.

    Raises:
        NotThere: The step has not reported this path.
    """
    progress = session.step_progress.get(step_id)
    if progress is None or path not in {*_accepted(progress), *reported_files(session, step_id)}:
        raise NotThere(f"step {step_id[:100]!r} of this session has reported no file {path[:200]!r}")
    shown = await to_thread.run_sync(_read, path, workspace)
    digest, expected = shown.pop("digest", None), progress.digests.get(path) or judged_digest(session, step_id, path)
    return {"path": path, **shown, "changed": digest != expected if digest and expected else None}


def _accepted(progress: StepProgress) -> Iterator[str]:
    for value in progress.outputs.values():
        yield from [value] if isinstance(value, str) else value


def _read(path: str, workspace: Workspace) -> Mapped:
    nothing: Mapped = {"size": None, "text": None, "truncated": False, "reason": None}
    try:
        with open_regular(path, workspace.output_roots) as (_, descriptor):
            size = os.fstat(descriptor).st_size
            if size > MAX_FILE:
                return {**nothing, "kind": "large", "size": size}
            with os.fdopen(os.dup(descriptor), "rb") as file:
                content = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        return {**nothing, "kind": "missing"}
    except PathRefused as error:
        return {**nothing, "kind": "refused", "reason": error.message}
    except OSError as error:
        return {**nothing, "kind": "refused", "reason": os.strerror(error.errno or 0)}
    return {**nothing, **_shown(content), "size": len(content)}


def _shown(content: bytes) -> Mapped:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    head = content[:MAX_TEXT]
    truncated = len(content) > len(head)
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The cut may have gone through a character.
        if not truncated or error.start < len(head) - 3:
            return {"kind": "binary", "digest": digest}
        text = head[: error.start].decode()
    if "\0" in text:
        return {"kind": "binary", "digest": digest}
    return {"kind": "text", "text": text, "truncated": truncated, "digest": digest}
