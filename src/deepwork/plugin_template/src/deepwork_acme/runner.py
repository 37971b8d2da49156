"""A reviewer that only looks whether there is something to read."""

from __future__ import annotations

from anyio import to_thread
from deepwork.api import ReviewRequest, ReviewRunner, Verdict, read_regular, same_verdict
from deepwork.errors import PathRefused, RunnerError

LIMIT = 1_000_000


class AcmeRunner(ReviewRunner):
    """Passes every file that is not empty. Put your own reviewer here: a program, a model, a person."""

    async def review(self, request: ReviewRequest) -> Verdict:
        """Look into the files of every task."""
        for path in [path for task in request.tasks for path in task.files]:
            content = await to_thread.run_sync(_read, request, path)
            if not content.strip():
                return same_verdict(request.criteria, passed=False, feedback=f"{path} is empty.")
        return same_verdict(request.criteria, passed=True)


def _read(request: ReviewRequest, path: str) -> bytes:
    try:
        return read_regular(path, [request.files_root], limit=LIMIT)
    except PathRefused as error:
        raise RunnerError(f"{path} {error.message}") from None
    except OSError as error:
        raise RunnerError(f"{path} cannot be read: {error.strerror}") from None
