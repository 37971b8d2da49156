"""A reviewer that only looks whether there is something to read."""

from __future__ import annotations

import anyio
from deepwork.api import NeedsWork, Passed, ReviewRequest, ReviewRunner, Verdict


class AcmeRunner(ReviewRunner):
    """Passes every file that is not empty. Put your own reviewer here: a program, a model, a person."""

    async def review(self, request: ReviewRequest) -> Verdict:
        """Look into the files of every task."""
        for path in [path for task in request.tasks for path in task.files]:
            if not (await anyio.Path(request.project_root, path).read_bytes()).strip():
                return NeedsWork(f"{path} is empty.")
        return Passed()
