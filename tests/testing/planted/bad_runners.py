"""Runners that each do one thing wrong, named with the one test that has to notice."""

from __future__ import annotations

import time

import anyio
import pytest

from deepwork.api import CriterionResult, HandedBack, NeedsWork, Passed, ReviewRunner
from deepwork.errors import RunnerError
from deepwork.testing import ReviewRunnerContract


def result(criterion, *, passed):
    return CriterionResult(criterion=criterion, passed=passed, feedback="because")


class GoodRunner(ReviewRunner):
    """Does everything right; the others change one part of it."""

    breaks = None

    def __init__(self, *, broken=False):
        self.broken = broken

    async def review(self, request):
        if self.broken:
            raise RunnerError("the reviewer is not there")
        await anyio.sleep(0.01)
        return HandedBack(f"Look at {request.step_id} again.")


class SaysYes(GoodRunner):
    breaks = "test_a_review_gives_a_verdict"

    async def review(self, request):
        await super().review(request)
        return True


class SaysNothing(GoodRunner):
    breaks = "test_the_agent_is_told_what_to_do"

    async def review(self, request):
        await super().review(request)
        return HandedBack(" \n")


class InventsCriteria(GoodRunner):
    breaks = "test_a_verdict_is_on_the_criteria_that_were_asked"

    async def review(self, request):
        await super().review(request)
        return NeedsWork("no", (result("Beautiful", passed=False),))


class PassesWithOneOfTwo(GoodRunner):
    breaks = "test_a_verdict_is_on_the_criteria_that_were_asked"

    async def review(self, request):
        await super().review(request)
        return Passed("fine", (result("True", passed=True),))


class ContradictsItself(GoodRunner):
    breaks = "test_a_verdict_agrees_with_its_criteria"

    async def review(self, request):
        await super().review(request)
        return Passed("fine", tuple(result(name, passed=False) for task in request.tasks for name in task.criteria))


class FailsForNothing(GoodRunner):
    breaks = "test_a_verdict_agrees_with_its_criteria"

    async def review(self, request):
        await super().review(request)
        return NeedsWork("no", tuple(result(name, passed=True) for task in request.tasks for name in task.criteria))


class MixesReviews(GoodRunner):
    breaks = "test_reviews_at_the_same_time_do_not_mix"

    async def review(self, request):
        self.request = request
        await super().review(request)
        criteria = [name for task in self.request.tasks for name in task.criteria]
        return NeedsWork("no", tuple(result(name, passed=False) for name in criteria))


class WorksOnce(GoodRunner):
    breaks = "test_one_runner_reviews_again_and_again"

    async def review(self, request):
        if getattr(self, "used", False):
            raise RunnerError("already used")
        self.used = True
        return await super().review(request)


class PassesThePayloadAsAnArgument(GoodRunner):
    breaks = "test_long_and_awkward_texts_are_reviewed"

    async def review(self, request):
        await anyio.run_process(["true", request.payload])
        return await super().review(request)


class NeedsNotes(GoodRunner):
    breaks = "test_a_review_of_nothing_in_particular_is_held"

    async def review(self, request):
        assert request.payload.splitlines()[0]
        return await super().review(request)


class WritesIntoTheWork(GoodRunner):
    breaks = "test_the_work_is_left_as_it_is"

    async def review(self, request):
        (request.project_root / "review.txt").write_text("seen")
        return await super().review(request)


class BlocksEverybody(GoodRunner):
    breaks = "test_others_go_on_meanwhile"

    async def review(self, request):
        time.sleep(5.5)
        return await super().review(request)


class GoesOnWhenCancelled(GoodRunner):
    breaks = "test_a_cancelled_review_ends_soon"

    async def review(self, request):
        with anyio.CancelScope(shield=True):
            await anyio.sleep(10.5)
        return await super().review(request)


class StaysBusy(GoodRunner):
    breaks = "test_a_cancelled_review_spoils_no_later_one"

    async def review(self, request):
        if getattr(self, "busy", False):
            raise RunnerError("busy")
        self.busy = True
        verdict = await super().review(request)
        self.busy = False
        return verdict


class Prints(GoodRunner):
    breaks = "test_nothing_is_printed"

    async def review(self, request):
        print("reviewing")
        return await super().review(request)


class FailsStrangely(GoodRunner):
    breaks = "test_a_runner_that_cannot_work_says_so"

    async def review(self, request):
        if self.broken:
            raise FileNotFoundError("reviewer")
        return await super().review(request)


class Fixtures:
    runner_class: type[GoodRunner]

    @pytest.fixture
    async def runner(self):
        return self.runner_class()

    @pytest.fixture
    async def broken_runner(self):
        return self.runner_class(broken=True)


CONTRACTS = (ReviewRunnerContract,)
for _runner in [GoodRunner, *GoodRunner.__subclasses__()]:
    globals()[f"Test{_runner.__name__}"] = type(
        f"Test{_runner.__name__}", (Fixtures, *CONTRACTS), {"runner_class": _runner, "breaks": _runner.breaks}
    )
