"""Fakes: parts that do what a test tells them to."""

from __future__ import annotations

from collections.abc import Iterable

from deepwork.api import HandedBack, ReviewRequest, ReviewRunner, Verdict


class ScriptedRunner(ReviewRunner):
    """Gives verdicts from a list, and remembers what it was asked.

    An exception in the list is raised. When the list is at its end, the last one is given again and again.

    Attributes:
        requests: What it was asked, in order.
    """

    def __init__(self, answers: Iterable[Verdict | Exception] = (HandedBack("Look at it again."),)) -> None:
        self._answers = list(answers)
        self.requests: list[ReviewRequest] = []

    async def review(self, request: ReviewRequest) -> Verdict:
        """Give the next answer."""
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer
