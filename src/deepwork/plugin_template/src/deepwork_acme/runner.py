"""A reviewer that only looks whether there is something to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread
from deepwork.api import (
    NeedsWork,
    Passed,
    PathRefused,
    ReviewRequest,
    ReviewRunner,
    RunnerError,
    Verdict,
    read_regular,
)

LIMIT = 1_000_000


class AcmeRunner(ReviewRunner):
    """Passes every file that is not empty. Put your own reviewer here: a program, a model, a person."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots

    async def review(self, request: ReviewRequest) -> Verdict:
        """Look into the files of every task."""
        for path in [path for task in request.tasks for path in task.files]:
            content = await to_thread.run_sync(self._read, path)
            if not content.strip():
                return NeedsWork(f"{path} is empty.")
        return Passed()

    def _read(self, path: str) -> bytes:
        try:
            return read_regular(path, self._roots, limit=LIMIT)
        except PathRefused as error:
            raise RunnerError(f"{path} {error.message}") from None
        except OSError as error:
            raise RunnerError(f"{path} cannot be read: {error.strerror}") from None
