"""The quality gate: who judges the outputs of a step, all at once, and what came of it."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import anyio
from anyio import to_thread

from deepwork.engine import evidence
from deepwork.engine.panel import Panel, Reviewer
from deepwork.engine.payload import Listed, Payload, files_of, inputs_of
from deepwork.engine.verdicts import checked
from deepwork.engine.watch import Watch
from deepwork.errors import (
    BadVerdict,
    DeepWorkError,
    ProgramFlood,
    ProgramMissing,
    ProgramTimeout,
    RunnerError,
    RunnerTimeout,
    RunnerUnavailable,
)
from deepwork.models.jobs import Review, Step, UserInput
from deepwork.models.replies import Outputs
from deepwork.models.reviews import HandedBack, NeedsWork, Passed, ReviewRequest, ReviewTask, Verdict
from deepwork.ports.review_runner import ReviewRunner
from deepwork.workspace import Workspace

log = logging.getLogger("deepwork.gate")

FILES_IN_TIME = 5
SECONDS_A_FILE = 30


@dataclass(frozen=True)
class Case:
    """What is to be judged: what was submitted for one step of one session."""

    session_id: str
    job_name: str
    workflow_name: str
    step: Step
    outputs: Outputs
    outputs_by_step: Mapping[str, Outputs] = field(default_factory=dict)
    notes: str | None = None

    @cached_property
    def inputs(self) -> list[Listed]:
        """The files of earlier steps on which this one builds."""
        return inputs_of(self.step, dict(self.outputs_by_step))

    @cached_property
    def paths(self) -> list[str]:
        """All files that a reviewer may see."""
        return [path for path, _ in [*files_of(self.outputs), *self.inputs]]


@dataclass(frozen=True)
class Evaluation:
    """One run of one reviewer: a review of a whole step, of an output, or of one of its files."""

    task: ReviewTask
    files: tuple[Listed, ...]
    target_file: str | None
    reviewer: Reviewer
    key: str

    @property
    def name(self) -> str:
        """How people know it."""
        return self.target_file or self.task.run_each


@dataclass(frozen=True)
class Outcome:
    """What came of one evaluation: a verdict, or the reason why there is none."""

    evaluation: Evaluation
    verdict: Verdict | None = None
    error: RunnerError | None = None
    seconds: float = 0.0
    reused: bool = False


@dataclass(frozen=True)
class Judgement:
    """What came of all evaluations of a step, in the order of its reviews."""

    outcomes: tuple[Outcome, ...]
    skipped: tuple[str, ...] = ()
    evidence: evidence.Evidence = field(default_factory=dict)
    changed: tuple[str, ...] = ()

    @property
    def failed(self) -> list[Outcome]:
        return [one for one in self.outcomes if isinstance(one.verdict, NeedsWork)]

    @property
    def broken(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.error]

    @property
    def handed_back(self) -> list[HandedBack]:
        return [one.verdict for one in self.outcomes if isinstance(one.verdict, HandedBack)]

    @property
    def reused(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.reused]


class QualityGate:
    """Has steps judged.

    Args:
        cli: The external reviewer; None in self-review mode.
        max_inline_files: Up to this many files stand in the payload with their contents.
        panel: Who judges which reviews; `cli` is the runner for those that take no route.
        timeout: Seconds that one external review may take, with up to five files.
        max_attempts: Failed verdicts after which a step is stuck.
        max_failures: Calls in a row without a verdict after which the agent is told to go on otherwise.
        concurrency: How many external reviews run at once.
    """

    def __init__(
        self,
        cli: ReviewRunner | None,
        *,
        max_inline_files: int,
        panel: Panel,
        workspace: Workspace,
        timeout: int,
        max_attempts: int,
        max_failures: int = 3,
        concurrency: int = 4,
    ) -> None:
        self.cli = cli
        self.max_inline_files = max_inline_files
        self.timeout = timeout
        self.max_attempts = max_attempts
        self.max_failures = max_failures
        self._panel = panel
        self._workspace = workspace
        self._pool = anyio.CapacityLimiter(concurrency)

    def gives_verdicts(self, case: Case) -> bool:
        """Say whether any review of a step goes to a reviewer that judges it; the others are handed back."""
        return any(self._reviewer(case, review).counts_attempts for review in _submitted(case))

    def skipped(self, case: Case) -> tuple[str, ...]:
        """Name the outputs whose reviews have nothing to judge, for they were not submitted."""
        judged = _submitted(case)
        return tuple(dict.fromkeys(one.run_each for one in case.step.reviews if one not in judged))

    async def take_evidence(self, case: Case) -> evidence.Evidence:
        """Read what is to be judged."""
        return await to_thread.run_sync(evidence.take, case.paths, self._workspace.output_roots)

    async def judge(
        self, case: Case, found: evidence.Evidence, *, passed_before: Collection[str], watch: Watch
    ) -> Judgement:
        """Have everything judged that needs a verdict; what is handed back comes last, if nothing failed.

        Args:
            case: What was submitted.
            found: Its files, as they were when the call came.
            passed_before: Keys of evaluations that passed, which are not paid for again.
            watch: Told how far it is.
        """
        evaluations = list(self._evaluations(case, found))
        outcomes: list[Outcome] = [Outcome(one) for one in evaluations]
        to_run = []
        for number, one in enumerate(evaluations):
            if one.key in passed_before:
                outcomes[number] = Outcome(one, Passed(), reused=True)
            else:
                to_run.append(number)
        watch.expect(len(to_run))

        async def run(number: int) -> None:
            outcomes[number] = await self._evaluate(case, evaluations[number], watch)

        async with anyio.create_task_group() as tasks:
            for number in to_run:
                tasks.start_soon(run, number)
        judged = {path for one in evaluations for path, _ in one.files} | {path for path, _ in case.inputs}
        after = await self.take_evidence(case) if to_run else found
        changed = tuple(path for path in evidence.changed(found, after) if path in judged)
        judgement = Judgement(tuple(outcomes), self.skipped(case), found, changed)
        if judgement.failed or judgement.broken or judgement.changed:
            return judgement
        return Judgement((*outcomes, *await self.hand_back(case)), judgement.skipped, found)

    async def hand_back(self, case: Case) -> list[Outcome]:
        """Let every reviewer that gives no verdicts hand back its reviews, all together."""
        outcomes: list[Outcome] = []
        by_reviewer: dict[Reviewer, list[ReviewTask]] = {}
        for review in _submitted(case):
            reviewer = self._reviewer(case, review)
            if not reviewer.counts_attempts:
                by_reviewer.setdefault(reviewer, []).append(_task(case, review))
        for reviewer, tasks in by_reviewer.items():
            files = tuple(files_of(case.outputs))
            whole = Evaluation(tasks[0], files, None, reviewer, "")
            request = await to_thread.run_sync(self._request, case, whole, tuple(tasks), None)
            outcomes.append(Outcome(whole, await reviewer.runner.review(request)))
        return outcomes

    def _evaluations(self, case: Case, found: evidence.Evidence) -> Iterator[Evaluation]:
        inputs = evidence.digests(found, (path for path, _ in case.inputs))
        for review in _submitted(case):
            reviewer = self._reviewer(case, review)
            if reviewer.counts_attempts:
                for files, target in _portions(case, review):
                    judged = evidence.digests(found, (path for path, _ in files))
                    task = ReviewTask(
                        run_each=review.run_each,
                        criteria=review.quality_criteria,
                        guidance=review.additional_review_guidance,
                        files=tuple(path for path, _ in files),
                    )
                    asked = (task.run_each, sorted(task.criteria.items()), task.guidance, case.notes)
                    key = evidence.digest_of(reviewer.name, *asked, judged, inputs)
                    yield Evaluation(task, files, target, reviewer, key)

    async def _evaluate(self, case: Case, one: Evaluation, watch: Watch) -> Outcome:
        async with one.reviewer.slots, self._pool:
            watch.begin(one.name)
            began = time.perf_counter()
            verdict, error = None, None
            try:
                verdict = await self._verdict(case, one)
            except RunnerError as raised:
                error = raised
            finally:
                watch.end(one.name)
            return Outcome(one, verdict, error, time.perf_counter() - began)

    async def _verdict(self, case: Case, one: Evaluation) -> Verdict:
        """Ask the runner; whatever it does otherwise than answering is an error that says so."""
        seconds = float(self.timeout + SECONDS_A_FILE * max(0, len(one.files) - FILES_IN_TIME))
        late = RunnerTimeout(f"no verdict within {seconds:g} s")
        try:
            request = await to_thread.run_sync(self._request, case, one, (one.task,), seconds)
            with anyio.fail_after(seconds):
                return checked(await one.reviewer.runner.review(request), one.task.criteria)
        except RunnerError:
            raise
        except DeepWorkError as error:
            raise _RUNNER_ERRORS.get(type(error), RunnerError)(error.message, hint=error.hint) from error
        except TimeoutError:
            raise late from None
        except Exception as error:
            log.exception("the review runner %r failed: this is a bug of it", one.reviewer.name)
            raise RunnerError(f"the runner failed: {type(error).__name__}: {str(error)[:300]}") from error

    def _request(
        self, case: Case, one: Evaluation, tasks: Sequence[ReviewTask], seconds: float | None
    ) -> ReviewRequest:
        limit = one.reviewer.max_inline_files
        nonce = secrets.token_hex(8) if one.reviewer.counts_attempts else None
        payload = Payload(self._workspace.output_roots, limit, nonce)
        return ReviewRequest(
            session_id=case.session_id,
            job_name=case.job_name,
            workflow_name=case.workflow_name,
            step_id=case.step.id,
            project_root=self._workspace.root,
            tasks=tuple(tasks),
            payload=payload.text(one.files, case.inputs),
            notes=case.notes,
            parameters={given.name: given.description for given in case.step.inputs if isinstance(given, UserInput)},
            nonce=nonce,
            seconds=seconds or float(self.timeout),
        )

    def _reviewer(self, case: Case, review: Review) -> Reviewer:
        return self._panel.reviewer(case.job_name, case.step.id, review.run_each)


_RUNNER_ERRORS: Mapping[type[DeepWorkError], type[RunnerError]] = {
    ProgramMissing: RunnerUnavailable,
    ProgramTimeout: RunnerTimeout,
    ProgramFlood: BadVerdict,
}


def _submitted(case: Case) -> list[Review]:
    """Give the reviews that have something to judge; one of an output that was not submitted has nothing."""
    return [one for one in case.step.reviews if one.run_each == "step" or case.outputs.get(one.run_each)]


def _portions(case: Case, review: Review) -> Iterable[tuple[tuple[Listed, ...], str | None]]:
    """Divide what a review judges: a step as a whole, an output as a file, or each file of a list by itself."""
    if review.run_each == "step":
        yield tuple(files_of(case.outputs)), None
        return
    for listed in files_of({review.run_each: case.outputs[review.run_each]}):
        yield (listed,), listed[0]


def _task(case: Case, review: Review) -> ReviewTask:
    value = case.outputs.get(review.run_each)
    return ReviewTask(
        run_each=review.run_each,
        criteria=review.quality_criteria,
        guidance=review.additional_review_guidance,
        files=(value,) if isinstance(value, str) else tuple(value or ()),
        one_by_one=isinstance(value, list),
    )
