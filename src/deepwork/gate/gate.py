"""Runs all reviews of a step at once, and returns one outcome for each."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

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
from deepwork.gate.findings import JudgedFiles
from deepwork.gate.fingerprints import Fingerprints, digest_of, digests
from deepwork.gate.payload import Payload
from deepwork.gate.progress import ReviewProgress
from deepwork.gate.snapshot import Copies, Snapshot, copy_name, listed_copies
from deepwork.gate.verdicts import checked
from deepwork.gate.work import (
    Evaluation,
    MissingRunner,
    Reviewer,
    Reviewers,
    Routing,
    Work,
    evaluations,
    handed_back_tasks,
)
from deepwork.models.jobs import Step, UserInput
from deepwork.models.outputs import ListedFile, files_of
from deepwork.models.reviews import HandedBack, NeedsWork, Passed, ReviewRequest, ReviewTask, Verdict, Waiting
from deepwork.paths.workspace import Workspace
from deepwork.ports.proofs import Proven, Prover, Trial

# The verdict that holds for an evaluation already, if there is one.
KnownVerdict = Callable[[Evaluation], Passed | NeedsWork | None]

log = logging.getLogger("deepwork.gate")

FILES_IN_TIME = 5
SECONDS_PER_FILE = 30
MAX_GAPS = 3


@dataclass(frozen=True)
class Outcome:
    """The result of one evaluation: a verdict, or the reason for its absence."""

    evaluation: Evaluation
    verdict: Verdict | None = None
    error: RunnerError | None = None
    seconds: float = 0.0
    reused: bool = False
    proven: Proven | None = None

    def proved(self, proven: Proven, *, holds: bool) -> Outcome:
        """Return a pass with its proof; without a verdict if the reviewer cannot fail, and that is held against it."""
        if holds and proven.error:
            return replace(self, proven=proven, verdict=None, error=proven.error, reused=False)
        return replace(self, proven=proven)


@dataclass(frozen=True)
class HandBack:
    """Reviews that a reviewer without verdicts has handed back to the agent, all those of a step together."""

    reviewer: Reviewer
    tasks: tuple[ReviewTask, ...]
    verdict: HandedBack


@dataclass(frozen=True)
class Judgement:
    """What came of all evaluations of a step, in the order of its reviews.

    Attributes:
        handed_back: What was handed back to the agent to have it reviewed itself.
        skipped: The outputs that were not submitted, so that their reviews had nothing to judge.
        changed: The files that changed while they were judged.
        untrusted: The settings that have no effect without trust, if a verdict is missing.
    """

    outcomes: tuple[Outcome, ...] = ()
    handed_back: tuple[HandBack, ...] = ()
    skipped: tuple[str, ...] = ()
    fingerprints: Fingerprints = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()

    @cached_property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if isinstance(outcome.verdict, NeedsWork)]

    @cached_property
    def broken(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.error]

    @cached_property
    def waiting(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if isinstance(outcome.verdict, Waiting)]

    async def undo(self) -> None:
        """Take back what runners have written, because the session could not be saved."""
        for hand_back in self.handed_back:
            await hand_back.verdict.undo()


class Question(NamedTuple):
    """What one reviewer is asked about which files."""

    reviewer: Reviewer
    tasks: tuple[ReviewTask, ...]
    files: Sequence[ListedFile]


class Bounds(NamedTuple):
    """The bounds of the reviews of a gate.

    Attributes:
        timeout: Seconds that one external review may take, with up to five files.
        max_attempts: Failed verdicts after which a step is stuck.
        max_failures: Calls in a row without a verdict after which the agent is told to go on otherwise.
        concurrency: How many external reviews run at once.
    """

    timeout: int = 120
    max_attempts: int = 3
    max_failures: int = 3
    concurrency: int = 4


class Proofs(NamedTuple):
    """The proofs that a pass says something.

    Attributes:
        prover: Has repeatable gates refuse broken work before their pass counts.
        holds: Whether a gate that passes broken work gives no verdict, instead of a notice.
    """

    prover: Prover
    holds: bool


class QualityGate:
    """Has steps judged. It knows nothing of sessions: work comes in, a judgement goes out.

    Attributes:
        cli: The external reviewer of all reviews without a route; None in self-review mode.
        max_inline_files: Up to this many files stand in its payload with their contents.

    Args:
        routing: Who judges which reviews.
        workspace: Where the work is.
        bounds: How long and how often it asks; those of the configuration's defaults if not given.
        proofs: None proves nothing.
        untrusted: Returns the labels of settings that have no effect without trust, to explain a missing verdict.
    """

    def __init__(
        self,
        routing: Routing,
        workspace: Workspace,
        *,
        bounds: Bounds | None = None,
        proofs: Proofs | None = None,
        untrusted: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.cli = routing.default.runner if routing.default.spec.gives_verdicts else None
        self.max_inline_files = routing.default.spec.max_inline_files
        self.timeout, self.max_attempts, self.max_failures, concurrency = bounds or Bounds()
        self._routing = routing
        self._workspace = workspace
        self._proofs = proofs
        self._untrusted = untrusted
        self._slots = anyio.CapacityLimiter(concurrency)

    def reviewers(self, job_name: str, step: Step) -> dict[str, Reviewers]:
        """Choose who judges each review of a step, one after the other, by its `run_each`."""
        return {
            review.run_each: self._routing.reviewers_of(job_name, step.id, review.run_each) for review in step.reviews
        }

    def missing_reviewer(self, job_name: str, steps: Iterable[Step]) -> RunnerUnavailable | None:
        """Return why reviews of these steps can never be held: no plugin offers their reviewer."""
        for step in steps:
            for reviewer in chain.from_iterable(self.reviewers(job_name, step).values()):
                if isinstance(reviewer.runner, MissingRunner):
                    return reviewer.runner.error
        return None

    async def unavailable(self) -> RunnerUnavailable | None:
        """Return why not every review can have a verdict now: a reviewer gives none, or cannot work."""
        for reviewer in self._routing.reviewers:
            if not reviewer.spec.gives_verdicts:
                return RunnerUnavailable(
                    f"reviews go to {reviewer.name!r}, which hands them back to the agent and gives no verdicts",
                    hint="Choose an external reviewer: --external-runner, or quality_gate.runner and "
                    "quality_gate.runners.",
                )
            if error := await reviewer.runner.unavailable(self._workspace.root):
                return error
        return None

    async def broken_reviewers(self) -> dict[str, RunnerUnavailable]:
        """Return why a reviewer that gives verdicts cannot work now, by name."""
        errors = {
            reviewer.name: await reviewer.runner.unavailable(self._workspace.root)
            for reviewer in self._routing.reviewers
            if reviewer.spec.gives_verdicts
        }
        return {name: error for name, error in errors.items() if error}

    async def judge(
        self,
        work: Work,
        copied: Snapshot,
        *,
        known_verdict: KnownVerdict = lambda _: None,
        progress: ReviewProgress | None = None,
    ) -> Judgement:
        """Have everything judged that needs a verdict; if nothing failed, hand back the other reviews.

        Args:
            work: What was submitted.
            copied: A copy of all files of the work, if any review gives a verdict.
            known_verdict: Returns what was judged before. It answers for unchanged files, which are not judged again.
            progress: Told how far it is.
        """
        judgement = Judgement(skipped=work.skipped)
        if work.gives_verdicts:
            judgement = await self._judged(work, copied, known_verdict, progress or ReviewProgress())
        if judgement.broken:
            return replace(judgement, untrusted=tuple(sorted(self._untrusted())))
        if judgement.failed or judgement.changed or judgement.waiting:
            return judgement
        hand_backs = await self._hand_back(work)
        return replace(judgement, handed_back=(*judgement.handed_back, *hand_backs)) if hand_backs else judgement

    @asynccontextmanager
    async def tried(self, work: Work) -> AsyncIterator[tuple[Judgement, Sequence[Trial]]]:
        """Have work judged without a session, and yield what came of it, and each reviewer that has judged.

        Raises:
            OutputError: The files are too large to be judged.
            StorageError: They cannot be copied.
        """
        async with Snapshot() as copied:
            for path, _ in work.files if work.gives_verdicts else ():
                copied.add(path, self._workspace.output_roots)
            judgement = await self.judge(work, copied)
            yield judgement, [self._trial(work, copied, outcome, ReviewProgress()) for outcome in judgement.outcomes]

    async def _judged(
        self, work: Work, copied: Snapshot, known_verdict: KnownVerdict, progress: ReviewProgress
    ) -> Judgement:
        """Ask for a verdict on every evaluation that has none, and see what changed meanwhile."""
        series = [
            [
                Outcome(evaluation, verdict, reused=verdict is not None)
                for evaluation, verdict in _known(portion, known_verdict)
            ]
            for portion in evaluations(work, copied.originals)
        ]
        progress.total = sum(not outcome.reused for one in series for outcome in one)

        async def run(one: list[Outcome]) -> None:
            for number, outcome in enumerate(one):
                if not outcome.reused:
                    one[number] = await self._evaluate(work, copied, outcome.evaluation, progress)
                if not isinstance(one[number].verdict, Passed):
                    progress.leave_out(sum(not left.reused for left in one[number + 1 :]))
                    del one[number + 1 :]

        async with anyio.create_task_group() as tasks:
            for one in series:
                if not all(outcome.reused for outcome in one):
                    tasks.start_soon(run, one)
        outcomes = [outcome for one in series for outcome in one]
        if self._proofs and any(outcome.evaluation.reviewer.spec.repeatable for outcome in outcomes):
            outcomes = await self._proved(self._proofs, work, copied, outcomes, progress)
        changed = await self._changed(work, copied, outcomes) if progress.total else ()
        return Judgement(
            outcomes=tuple(outcomes),
            handed_back=tuple(_hand_backs(outcomes)),
            skipped=work.skipped,
            fingerprints=copied.originals,
            changed=changed,
        )

    async def _changed(self, work: Work, copied: Snapshot, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
        judged = {listed.path for outcome in outcomes for listed in (*outcome.evaluation.files, *work.inputs)}
        changed = await to_thread.run_sync(copied.changed, self._workspace.output_roots)
        return tuple(path for path in changed if path in judged)

    async def _hand_back(self, work: Work) -> list[HandBack]:
        hand_backs: list[HandBack] = []
        for reviewer, tasks in handed_back_tasks(work).items():
            question = Question(reviewer, tuple(tasks), tuple(files_of(work.outputs)))
            request = await to_thread.run_sync(self._request, work, question, float(self.timeout))
            verdict = await reviewer.runner.review(request)
            if not isinstance(verdict, HandedBack):
                raise BadVerdict(f"the runner {reviewer.name!r} was to hand the review back, but gave a verdict")
            hand_backs.append(HandBack(reviewer, tuple(tasks), verdict))
        return hand_backs

    async def _evaluate(
        self, work: Work, copied: Snapshot, evaluation: Evaluation, progress: ReviewProgress
    ) -> Outcome:
        async with evaluation.reviewer.slots, self._slots:
            name = evaluation.name
            progress.begin(name)
            start = time.perf_counter()
            verdict, error = None, None
            try:
                verdict = await self._verdict(work, copied, evaluation)
            except RunnerError as raised:
                error = raised
            finally:
                progress.end(name)
            return Outcome(evaluation, verdict, error, time.perf_counter() - start)

    async def _proved(
        self, proofs: Proofs, work: Work, copied: Snapshot, outcomes: Sequence[Outcome], progress: ReviewProgress
    ) -> list[Outcome]:
        """Have repeatable gates refuse the work, broken, before their passes count; tell what they have refused."""
        repeatable = [outcome for outcome in outcomes if outcome.evaluation.reviewer.spec.repeatable]
        if not all(isinstance(outcome.verdict, Passed) for outcome in outcomes):
            refused = [one for one in repeatable if isinstance(one.verdict, NeedsWork) and not one.reused]
            await proofs.prover.refused([self._trial(work, copied, outcome, progress) for outcome in refused])
            return [*outcomes]
        trials = [self._trial(work, copied, outcome, progress) for outcome in repeatable]
        proven = iter(await proofs.prover.prove(trials))
        return [
            outcome.proved(next(proven), holds=proofs.holds) if outcome.evaluation.reviewer.spec.repeatable else outcome
            for outcome in outcomes
        ]

    def _trial(self, work: Work, copied: Snapshot, outcome: Outcome, progress: ReviewProgress) -> Trial:
        """Return a reviewer and its work, to be tried on other contents; `progress` is told of every run."""
        evaluation, root = outcome.evaluation, self._workspace.root
        reviewer, task = evaluation.reviewer, evaluation.task
        name = f"{evaluation.name} by {reviewer.name}, broken on purpose"

        async def key() -> str | None:
            identity = await reviewer.runner.identity(root)
            criteria = (task.run_each, sorted(task.criteria.items()), task.guidance)
            inputs = digests(copied.originals, work.inputs)
            return digest_of(reviewer.name, identity, criteria, inputs) if identity else None

        async def ask(copies: Path, seconds: float, seen: Path | None) -> Verdict:
            progress.total += 1
            progress.begin(name)
            try:
                async with reviewer.slots, self._slots:
                    return await self._verdict(work, Copies(copies), evaluation, seconds=seconds, seen=seen)
            finally:
                progress.end(name)

        return Trial(
            reviewer=reviewer.name,
            run_each=task.run_each,
            passed=isinstance(outcome.verdict, Passed),
            repeatable=reviewer.spec.repeatable,
            copies=copied.root,
            files={path: copy_name(path) for path in task.files},
            project=root if reviewer.spec.judges_project else None,
            must_fail=reviewer.spec.must_fail,
            seconds=outcome.seconds,
            seed=evaluation.subject,
            place=digest_of(work.session_id, work.step.id, reviewer.name, task.run_each),
            key=key,
            ask=ask,
        )

    async def _verdict(
        self,
        work: Work,
        copied: Snapshot | Copies,
        evaluation: Evaluation,
        *,
        seconds: float | None = None,
        seen: Path | None = None,
    ) -> Verdict:
        """Ask the runner; a timeout or an exception becomes an error that the agent can read."""
        reviewer = evaluation.reviewer
        usual = float(self.timeout + SECONDS_PER_FILE * max(0, len(evaluation.files) - FILES_IN_TIME))
        seconds = usual if seconds is None else min(seconds, usual)
        try:
            question = Question(reviewer, (evaluation.task,), evaluation.files)
            request = await to_thread.run_sync(self._request, work, question, seconds, copied)
            request = replace(request, seen=seen) if seen else request
            with anyio.fail_after(seconds):
                verdict = await reviewer.runner.review(request)
            verdict = checked(verdict, evaluation.task.criteria)
            return await self._pointed(verdict, evaluation, copied)
        except RunnerError:
            raise
        except DeepWorkError as error:
            raise _RUNNER_ERRORS.get(type(error), RunnerError)(error.message, hint=error.hint) from error
        except TimeoutError:
            raise RunnerTimeout(f"no verdict within {seconds:g} s") from None
        except Exception as error:
            log.exception("the review runner %r failed: this is a bug of the runner", reviewer.name)
            raise RunnerError(f"the runner failed: {type(error).__name__}: {str(error)[:300]}") from error

    async def _pointed(self, verdict: Verdict, evaluation: Evaluation, copied: Snapshot | Copies) -> Verdict:
        """Return a verdict with those of its findings that point into the judged files."""
        if isinstance(verdict, HandedBack | Waiting) or not verdict.findings:
            return verdict
        judged = JudgedFiles(
            paths={copy_name(path): path for path in evaluation.task.files},
            folders=(copied.root, self._workspace.root),
            contents=copied.root,
            criteria=evaluation.task.criteria,
        )
        return replace(verdict, findings=await to_thread.run_sync(judged.pointed, verdict.findings))

    def _request(
        self, work: Work, question: Question, seconds: float, copied: Snapshot | Copies | None = None
    ) -> ReviewRequest:
        """Put a question into the words that a runner reads: without copies, about the files as they lie."""
        reviewer, tasks, files = question
        nonce = secrets.token_hex(8) if reviewer.spec.gives_verdicts else None
        inputs: Sequence[ListedFile] = work.inputs
        roots = self._workspace.output_roots
        if copied:
            roots = (copied.root,)
            files, inputs = listed_copies(files), listed_copies(inputs)
            tasks = tuple(replace(task, files=tuple(map(copy_name, task.files))) for task in tasks)
        payload = Payload(roots, reviewer.spec.max_inline_files, nonce)
        text = payload.text(files, inputs)
        if payload.gaps and not reviewer.spec.reads_files:
            raise _unseen(reviewer.name, payload.gaps)
        return ReviewRequest(
            session_id=work.session_id,
            job_name=work.job_name,
            workflow_name=work.workflow_name,
            step_id=work.step.id,
            project_root=self._workspace.root,
            tasks=tasks,
            payload=text,
            notes=work.notes,
            parameters={item.name: item.description for item in work.step.inputs if isinstance(item, UserInput)},
            nonce=nonce,
            seconds=seconds,
            snapshot=copied.root if copied else None,
        )


def _known(portion: Iterable[Evaluation], known_verdict: KnownVerdict) -> Iterator[tuple[Evaluation, Verdict | None]]:
    """Yield the evaluations of a portion with the verdicts that hold for them, up to the first that did not pass."""
    for evaluation in portion:
        verdict = None if evaluation.reviewer.spec.judges_project else known_verdict(evaluation)
        yield evaluation, verdict
        if isinstance(verdict, NeedsWork):
            return


def _hand_backs(outcomes: Iterable[Outcome]) -> Iterator[HandBack]:
    """Find what reviewers that may give verdicts have handed back instead."""
    for outcome in outcomes:
        if isinstance(outcome.verdict, HandedBack):
            yield HandBack(outcome.evaluation.reviewer, (outcome.evaluation.task,), outcome.verdict)


def _unseen(name: str, gaps: Sequence[str]) -> RunnerError:
    return RunnerError(
        f"the runner {name!r} cannot open files, and was not asked because it would see {'; '.join(gaps[:MAX_GAPS])}",
        hint="Report fewer or smaller text files, or ask the user for a reviewer that opens files.",
    )


_RUNNER_ERRORS: Mapping[type[DeepWorkError], type[RunnerError]] = {
    ProgramMissing: RunnerUnavailable,
    ProgramTimeout: RunnerTimeout,
    ProgramFlood: BadVerdict,
}
