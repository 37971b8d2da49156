"""What every review runner has to do."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from deepwork.api import HandedBack, NeedsWork, Passed, ReviewRequest, ReviewRunner, Verdict
from deepwork.errors import DeepWorkError
from deepwork.models.reviews import ReviewTask, Waiting
from deepwork.testing.contracts.contract import Contract
from deepwork.testing.samples import a_request
from deepwork.testing.wire import PATIENCE

VERDICTS = (Passed, NeedsWork, HandedBack, Waiting)
# A busy machine spoils an attempt or two; a review that blocks, or goes on, takes longer every time.
ATTEMPTS = 3
LONGEST_BLOCK = 5.0
LONGEST_CANCELLATION = 10.0


class ReviewRunnerContract(Contract):
    """Override `runner`; override `broken_runner` too if your runner needs something that may be missing.

    The runner reviews in `project_root`, an empty folder. It may ask a scripted reviewer instead of a real one.
    """

    @pytest.fixture
    def project_root(self, tmp_path: Path) -> Path:
        """The folder of the project whose work is reviewed."""
        root = tmp_path / "reviewed"
        root.mkdir()
        return root

    @pytest.fixture
    async def runner(self, project_root: Path) -> Any:
        """Return the runner to test."""
        raise NotImplementedError("override the fixture `runner`")

    @pytest.fixture
    async def broken_runner(self, project_root: Path) -> Any:
        """Return a runner that cannot do its work: its program is missing, its disk is full."""
        pytest.skip("`broken_runner` is not overridden")

    async def test_a_review_gives_a_verdict(self, runner: ReviewRunner, project_root: Path) -> None:
        verdict = await _review(runner, a_request(project_root))
        assert isinstance(verdict, VERDICTS), f"{verdict!r} is not a verdict"

    async def test_the_agent_is_told_what_to_do(self, runner: ReviewRunner, project_root: Path) -> None:
        """Only of work that passed there may be nothing to say."""
        verdict = await _review(runner, a_request(project_root))
        if not isinstance(verdict, Passed):
            assert (verdict.text if isinstance(verdict, Waiting) else verdict.feedback).strip()

    async def test_a_verdict_is_on_the_criteria_that_were_asked(self, runner: ReviewRunner, project_root: Path) -> None:
        request = a_request(project_root)
        _check_criteria(await _review(runner, request), request)

    async def test_a_verdict_agrees_with_its_criteria(self, runner: ReviewRunner, project_root: Path) -> None:
        verdict = await _review(runner, a_request(project_root))
        if isinstance(verdict, Passed):
            assert all(result.passed for result in verdict.criteria), "it passed, though a criterion did not"
        elif isinstance(verdict, NeedsWork) and verdict.criteria:
            assert not all(result.passed for result in verdict.criteria), "it did not pass, but every criterion did"

    async def test_reviews_at_the_same_time_do_not_mix(self, runner: ReviewRunner, project_root: Path) -> None:
        requests = [
            a_request(
                project_root,
                session_id=f"s{number}",
                tasks=(ReviewTask(run_each="step", criteria={f"Criterion {number}": "Is it good?"}),),
            )
            for number in range(4)
        ]
        verdicts: dict[str, Verdict] = {}

        async def review(request: ReviewRequest) -> None:
            verdicts[request.session_id] = await _review(runner, request)

        async with anyio.create_task_group() as tasks:
            for request in requests:
                tasks.start_soon(review, request)
        for request in requests:
            _check_criteria(verdicts[request.session_id], request)

    async def test_one_runner_reviews_again_and_again(self, runner: ReviewRunner, project_root: Path) -> None:
        for number in range(3):
            assert isinstance(await _review(runner, a_request(project_root, step_id=f"step_{number}")), VERDICTS)

    async def test_long_and_awkward_texts_are_reviewed(self, runner: ReviewRunner, project_root: Path) -> None:
        name = "-rf 'quoted' \u202e größe.md"
        (project_root / name).write_text("x", encoding="utf-8")
        request = a_request(
            project_root,
            tasks=(
                ReviewTask(
                    run_each=name,
                    criteria={"With \"quotes'": "Is it\n\n## good?\n```"},
                    guidance="$(rm -rf /) `id` %s {} \\",
                    files=(name,),
                    one_by_one=True,
                ),
            ),
            payload="数据 " * 400_000,
            notes="--help\n" * 1000,
            parameters={"who": "Ask the user: «who?»"},
        )
        assert isinstance(await _review(runner, request), VERDICTS)

    async def test_a_review_of_nothing_in_particular_is_held(self, runner: ReviewRunner, project_root: Path) -> None:
        """No notes, no guidance, no file: the least that a request has."""
        task = ReviewTask(run_each="step", criteria={"Good": "Is it good?"})
        assert isinstance(await _review(runner, a_request(project_root, tasks=(task,), payload="")), VERDICTS)

    async def test_the_work_is_left_as_it_is(self, runner: ReviewRunner, project_root: Path) -> None:
        """A runner writes nothing but below `.deepwork`."""
        request = a_request(project_root)
        before = _work(project_root)
        await _review(runner, request)
        assert _work(project_root) == before

    async def test_others_go_on_meanwhile(self, runner: ReviewRunner, project_root: Path) -> None:
        """A runner waits without blocking the event loop, which serves other agents too."""

        async def block() -> float:
            pauses = [0.0]

            async def watch() -> None:
                while True:
                    started = time.monotonic()
                    await anyio.sleep(0.01)
                    pauses.append(time.monotonic() - started)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch)
                await anyio.lowlevel.checkpoint()
                await _review(runner, a_request(project_root))
                await anyio.sleep(0.02)
                tasks.cancel_scope.cancel()
            return max(pauses)

        longest = await _best(block, LONGEST_BLOCK)
        assert longest < LONGEST_BLOCK, f"the event loop stood still for {longest:.1f} s"

    async def test_a_cancelled_review_ends_soon(self, runner: ReviewRunner, project_root: Path) -> None:
        async def cancelled() -> float:
            started = time.monotonic()
            with anyio.move_on_after(0.05):
                await runner.review(a_request(project_root))
            return time.monotonic() - started

        took = await _best(cancelled, LONGEST_CANCELLATION)
        assert took < LONGEST_CANCELLATION, "the review went on after it was cancelled"

    async def test_a_cancelled_review_spoils_no_later_one(self, runner: ReviewRunner, project_root: Path) -> None:
        for delay in (0, 0.001, 0.05):
            with anyio.move_on_after(delay):
                await runner.review(a_request(project_root))
        assert isinstance(await _review(runner, a_request(project_root)), VERDICTS)

    async def test_nothing_is_printed(
        self, runner: ReviewRunner, project_root: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """On stdio the output of the server is the protocol."""
        await _review(runner, a_request(project_root))
        assert capfd.readouterr().out == ""

    async def test_a_runner_that_cannot_work_says_so(self, broken_runner: ReviewRunner, project_root: Path) -> None:
        """It raises an expected error, `RunnerError` for want of a better one, that the agent can read."""
        with pytest.raises(DeepWorkError) as error:
            await _review(broken_runner, a_request(project_root))
        assert error.value.message.strip()


async def _best(measure: Callable[[], Awaitable[float]], limit: float) -> float:
    """Return the first measured time below a limit, or the last one of several."""
    for _ in range(ATTEMPTS):
        seconds = await measure()
        if seconds < limit:
            break
    return seconds


async def _review(runner: ReviewRunner, request: ReviewRequest) -> Verdict:
    with anyio.fail_after(PATIENCE):
        return await runner.review(request)


def _check_criteria(verdict: Verdict, request: ReviewRequest) -> None:
    """A verdict answers every criterion of the request once, and no other: the gate takes nothing else for one."""
    if isinstance(verdict, HandedBack | Waiting):
        return
    requested = [name for task in request.tasks for name in task.criteria]
    assert sorted(result.criterion for result in verdict.criteria) == sorted(requested)


def _work(root: Path) -> dict[str, bytes]:
    files = [path for path in root.rglob("*") if path.is_file() and ".deepwork" not in path.relative_to(root).parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
