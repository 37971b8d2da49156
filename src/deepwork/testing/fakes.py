"""Fakes: parts that do what a test tells them to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from deepwork.api import HandedBack, NeedsWork, Passed, ReviewRequest, ReviewRunner, Verdict, same_verdict


class ScriptedRunner(ReviewRunner):
    """Gives verdicts from a list, and remembers what it was asked.

    An exception in the list is raised. When the list is at its end, the last one is given again and again. A verdict
    that lists no criteria answers all of them alike.

    Attributes:
        requests: What it was asked, in order.
    """

    def __init__(self, answers: Iterable[Verdict | Exception] = (HandedBack("Look at it again."),)) -> None:
        self._answers = list(answers)
        self.requests: list[ReviewRequest] = []

    async def review(self, request: ReviewRequest) -> Verdict:
        """Return the next answer."""
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answered(answer, request)


def answered(verdict: Verdict, request: ReviewRequest) -> Verdict:
    """Let a verdict that lists no criteria answer all of the request alike."""
    if not isinstance(verdict, Passed | NeedsWork) or verdict.criteria:
        return verdict
    results = same_verdict(request.criteria, passed=isinstance(verdict, Passed)).criteria
    return replace(verdict, criteria=results)
