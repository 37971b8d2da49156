"""What judges the outputs of a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from deepwork.errors import RunnerUnavailable
from deepwork.models.reviews import ReviewRequest, Verdict


class ReviewRunner(ABC):
    """Judges what a step has made."""

    @abstractmethod
    async def review(self, request: ReviewRequest) -> Verdict:
        """Judge, or hand the review back to the agent.

        No lock is held meanwhile, and several reviews run at once. The review is cancelled after `request.seconds`, and
        when the agent's call is cancelled: then end everything that was started, as `run_program` does.

        Raises:
            RunnerError: There is no verdict; the work counts as not judged, and the agent reads why.
            DeepWorkError: It means the same; `ProgramError` of `run_program` is an example.
        """

    async def identity(self, project_root: Path) -> str | None:
        """Return what is different for a runner that may judge otherwise, such as a digest of its program.

        What was proved of the runner holds while it stays the same; with None it holds for one attempt.
        """
        return None

    async def unavailable(self, project_root: Path) -> RunnerUnavailable | None:
        """Return why this runner cannot work now, without asking it to; None if nothing is known against it.

        A strict gate asks this before a workflow is started.
        """
        return None
