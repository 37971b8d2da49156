"""One judgement of the work of a step: all its reviews at once, and one outcome for each."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
from deepwork.gate.work import Evaluation, Reviewer, Work, evaluations, handed_back_tasks
from deepwork.models.jobs import UserInput
from deepwork.models.outputs import ListedFile, files_of
from deepwork.models.reviews import HandedBack, NeedsWork, Passed, ReviewRequest, ReviewTask, Verdict, Waiting
from deepwork.ports.proofs import Proven, Prover, Trial

if TYPE_CHECKING:
    from deepwork.gate.gate import QualityGate

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


class Proofs(NamedTuple):
    """The proofs that a pass says something.

    Attributes:
        prover: Has repeatable gates refuse broken work before their pass counts.
        holds: Whether a gate that passes broken work gives no verdict, instead of a notice.
    """

    prover: Prover
    holds: bool


class Judging:
    """Judges one work for a gate, on copies of its files; the progress is told how far it is."""

    def __init__(self, gate: QualityGate, work: Work, copied: Snapshot, progress: ReviewProgress) -> None:
        self._gate = gate
        self._work = work
        self._copied = copied
        self._progress = progress

    async def verdicts(self, known_verdict: KnownVerdict) -> Judgement:
        """Ask for a verdict on every evaluation that has none, and see what changed meanwhile."""
        work, copied, progress, proofs = self._work, self._copied, self._progress, self._gate.proofs
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
                    one[number] = await self._evaluate(outcome.evaluation)
                if not isinstance(one[number].verdict, Passed):
                    progress.leave_out(sum(not left.reused for left in one[number + 1 :]))
                    del one[number + 1 :]

        async with anyio.create_task_group() as tasks:
            for one in series:
                if not all(outcome.reused for outcome in one):
                    tasks.start_soon(run, one)
        outcomes = [outcome for one in series for outcome in one]
        if proofs and any(outcome.evaluation.reviewer.spec.repeatable for outcome in outcomes):
            outcomes = await self._proved(proofs, outcomes)
        changed = await self._changed(outcomes) if progress.total else ()
        return Judgement(
            outcomes=tuple(outcomes),
            handed_back=tuple(_hand_backs(outcomes)),
            skipped=work.skipped,
            fingerprints=copied.originals,
            changed=changed,
        )

    async def _changed(self, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
        judged = {listed.path for outcome in outcomes for listed in (*outcome.evaluation.files, *self._work.inputs)}
        changed = await to_thread.run_sync(self._copied.changed, self._gate.workspace.output_roots)
        return tuple(path for path in changed if path in judged)

    async def hand_back(self) -> list[HandBack]:
        """Ask the reviewers that give no verdicts, each once about everything that is theirs.

        Raises:
            BadVerdict: One has given a verdict all the same.
        """
        work = self._work
        hand_backs: list[HandBack] = []
        for reviewer, tasks in handed_back_tasks(work).items():
            question = Question(reviewer, tuple(tasks), tuple(files_of(work.outputs)))
            request = await to_thread.run_sync(self._request, question, float(self._gate.timeout))
            verdict = await reviewer.runner.review(request)
            if not isinstance(verdict, HandedBack):
                raise BadVerdict(f"the runner {reviewer.name!r} was to hand the review back, but gave a verdict")
            hand_backs.append(HandBack(reviewer, tuple(tasks), verdict))
        return hand_backs

    async def _evaluate(self, evaluation: Evaluation) -> Outcome:
        async with evaluation.reviewer.slots, self._gate.slots:
            name, progress = evaluation.name, self._progress
            progress.begin(name)
            start = time.perf_counter()
            verdict, error = None, None
            try:
                verdict = await self._verdict(evaluation, self._copied)
            except RunnerError as raised:
                error = raised
            finally:
                progress.end(name)
            return Outcome(evaluation, verdict, error, time.perf_counter() - start)

    async def _proved(self, proofs: Proofs, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Have repeatable gates refuse the work, broken, before their passes count; tell what they have refused."""
        repeatable = [outcome for outcome in outcomes if outcome.evaluation.reviewer.spec.repeatable]
        if not all(isinstance(outcome.verdict, Passed) for outcome in outcomes):
            refused = [one for one in repeatable if isinstance(one.verdict, NeedsWork) and not one.reused]
            await proofs.prover.refused([*map(self.trial, refused)])
            return [*outcomes]
        proven = iter(await proofs.prover.prove([*map(self.trial, repeatable)]))
        return [
            outcome.proved(next(proven), holds=proofs.holds) if outcome.evaluation.reviewer.spec.repeatable else outcome
            for outcome in outcomes
        ]

    def trial(self, outcome: Outcome) -> Trial:
        """Return a reviewer and its work, to be tried on other contents; the progress is told of every run."""
        work, copied, progress = self._work, self._copied, self._progress
        evaluation, root = outcome.evaluation, self._gate.workspace.root
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
                async with reviewer.slots, self._gate.slots:
                    return await self._verdict(evaluation, Copies(copies), seconds=seconds, seen=seen)
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
        evaluation: Evaluation,
        copied: Snapshot | Copies,
        *,
        seconds: float | None = None,
        seen: Path | None = None,
    ) -> Verdict:
        """Ask the runner; a timeout or an exception becomes an error that the agent can read."""
        reviewer = evaluation.reviewer
        usual = float(self._gate.timeout + SECONDS_PER_FILE * max(0, len(evaluation.files) - FILES_IN_TIME))
        seconds = usual if seconds is None else min(seconds, usual)
        try:
            question = Question(reviewer, (evaluation.task,), evaluation.files)
            request = await to_thread.run_sync(self._request, question, seconds, copied)
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
            folders=(copied.root, self._gate.workspace.root),
            contents=copied.root,
            criteria=evaluation.task.criteria,
        )
        return replace(verdict, findings=await to_thread.run_sync(judged.pointed, verdict.findings))

    def _request(self, question: Question, seconds: float, copied: Snapshot | Copies | None = None) -> ReviewRequest:
        """Put a question into the words that a runner reads: without copies, about the files as they lie."""
        reviewer, tasks, files = question
        work, workspace = self._work, self._gate.workspace
        nonce = secrets.token_hex(8) if reviewer.spec.gives_verdicts else None
        inputs: Sequence[ListedFile] = work.inputs
        roots = workspace.output_roots
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
            project_root=workspace.root,
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
