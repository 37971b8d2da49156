"""Who judges the outputs of a step."""

from __future__ import annotations

from abc import ABC, abstractmethod

from deepwork.models.reviews import ReviewRequest, Verdict


class ReviewRunner(ABC):
    """Judges what a step has made."""

    @abstractmethod
    async def review(self, request: ReviewRequest) -> Verdict:
        """Judge, or hand the review back to the agent.

        No lock is held meanwhile, and the call may be cancelled.

        Raises:
            RunnerError: There is no verdict.
        """
