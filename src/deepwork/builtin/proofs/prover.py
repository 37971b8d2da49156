"""Gates that were seen red: before the pass of a repeatable gate counts, it has to refuse this very work, broken."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Literal

from anyio import CancelScope, to_thread

from deepwork.api import NeedsWork, Passed, PathRefused, RunnerError, RunnerTimeout, Verdict, history, read_regular
from deepwork.builtin.proofs.committed import committed
from deepwork.builtin.proofs.counterfactuals import (
    CONTROL,
    Counterfactual,
    contents_of,
    mutations,
    refused,
    series,
    written,
)
from deepwork.builtin.proofs.kept import KeptProofs
from deepwork.builtin.proofs.red import doubt
from deepwork.errors import GateCannotFail, MountsRefused
from deepwork.paths.user_folders import user_state_dir
from deepwork.ports.proofs import Proven, Prover, Trial
from deepwork.text import visible

MAX_TRIES = 3
MIN_SECONDS = 60.0
MAX_SAMPLE = 16 * 1024 * 1024

Committed = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
ONLY_USER = "Only the user can fix this gate: tell them."


class ProofResult(StrEnum):
    """What came of trying to see a gate red."""

    PROVED = "proved"
    CANNOT_FAIL = "cannot_fail"
    NOT_PROVABLE = "not_provable"


class Grade(StrEnum):
    """What a gate was seen to refuse: work that is missing or empty, or also what is wrong in it."""

    PRESENCE = "presence"
    CONTENT = "content"


@dataclass(frozen=True)
class Tried:
    """One run of a gate on a counterfactual; `verdict` is `red`, `green` or `none`."""

    counterfactual: Counterfactual
    verdict: Literal["red", "green", "none"]
    reason: str
    seconds: float

    def facts(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "kind": self.counterfactual.kind,
            "output": self.counterfactual.output,
            "verdict": self.verdict,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Proof:
    """Whether a gate was seen to refuse the work when it was broken."""

    result: ProofResult
    grade: Grade | None = None
    reason: str = ""
    tried: tuple[Tried, ...] = ()

    def told(self, gate: str) -> Proven:
        """Return what the history keeps of it, and what the agent has to know."""
        known = {"grade": self.grade and str(self.grade), "reason": self.reason}
        kept = history.Proof(result=str(self.result), **{name: value for name, value in known.items() if value})
        if self.result is ProofResult.CANNOT_FAIL:
            why = f"says nothing: {self.reason}"
            error = GateCannotFail(f"its pass {why}", hint=ONLY_USER)
            return Proven(proof=kept, notice=f"The pass of {visible(gate)!r} {why}. {ONLY_USER}", error=error)
        if self.result is ProofResult.NOT_PROVABLE:
            why = self.reason.removesuffix(".")
            return Proven(
                proof=kept, notice=f"It is not proved here that {visible(gate)!r} can refuse this work: {why}."
            )
        return Proven(proof=kept)


@dataclass(frozen=True)
class Subject:
    """A gate and the work on which it is tried.

    Attributes:
        trial: The gate, and where the honest work is.
        files: What the judged files hold, by their paths.
        samples: The work as the user's samples have it, which the gate must refuse.
        key: What was proved under it holds as long as it stays the same; None if nothing does.
        numbers: One for each time that the gate is asked.
    """

    trial: Trial
    files: Mapping[str, bytes]
    samples: Sequence[Counterfactual] = ()
    key: str | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def holds(self) -> bool:
        """Whether a proof holds for other sessions: not that of a gate which may see all of the project."""
        return self.key is not None and self.trial.project is None


@dataclass
class Budget:
    """The time that all proofs of a step may take."""

    seconds: float
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self._start)


class GateProver(Prover):
    """Tries gates on broken work, which never reaches the project.

    Args:
        project: The project, in which samples lie.
        state: The folder of the user in which the secret and kept proofs are.
        committed: Returns what files of the project held before the work on them, by their paths.
    """

    def __init__(self, project: Path, state: Path, committed: Committed) -> None:
        self._committed = committed
        self._kept = KeptProofs(project, state)
        self._project = project
        self._secret: bytes | None = None
        self._has_mounts = True

    async def prove(self, trials: Sequence[Trial]) -> list[Proven]:
        """Ask each gate about broken work, within the time of all."""
        budget = budget_of(trial.seconds for trial in trials)
        proofs: dict[tuple[str, str], Proven] = {}
        for trial in trials:
            gate = (trial.reviewer, trial.run_each)
            if gate not in proofs:
                proofs[gate] = (await self.proof_of(trial, budget)).told(trial.reviewer)
        return [proofs[trial.reviewer, trial.run_each] for trial in trials]

    async def refused(self, trials: Sequence[Trial]) -> None:
        """Keep what gates have refused."""
        for trial in trials:
            await to_thread.run_sync(self._keep_refused, trial)

    def weak(self) -> dict[str, str]:
        """Return the gates that cannot fail, and what they have passed."""
        return self._kept.weak()

    async def proof_of(self, trial: Trial, budget: Budget, *, anew: bool = False) -> Proof:
        """Ask a gate about broken work until it refuses it, and then about the honest work again.

        Args:
            trial: The gate.
            budget: How long it may take.
            anew: Whether it is asked again, although it was proved before.
        """
        key = None if anew else await trial.key()
        subject = await to_thread.run_sync(self._subject, trial, key)
        if isinstance(subject, Proof):
            return subject
        if subject.key and subject.holds and await to_thread.run_sync(self._kept.has, subject.key):
            return Proof(ProofResult.PROVED, Grade.CONTENT, "it was proved before")
        plan = _in_turn(subject.samples) if subject.samples else await self._series(subject)
        proof = await self._tried(subject, plan, budget)
        await to_thread.run_sync(self._keep, subject, proof)
        return proof

    async def _tried(self, subject: Subject, plan: Generator[Counterfactual, bool, None], budget: Budget) -> Proof:
        tried: list[Tried] = []
        counterfactual = next(plan, None)
        while counterfactual and len(tried) < MAX_TRIES:
            tried.append(await self._try(subject, counterfactual, budget))
            is_red = tried[-1].verdict == "red"
            if is_red and counterfactual.is_content:
                break
            try:
                counterfactual = plan.send(is_red)
            except StopIteration:
                break
        return await self._concluded(subject, tried, budget)

    async def _concluded(self, subject: Subject, tried: Sequence[Tried], budget: Budget) -> Proof:
        """Return what follows from all that was tried; what was refused counts if the honest work passes again."""
        reds = [one for one in tried if one.verdict == "red"]
        silent = next((one.reason for one in tried if one.verdict == "none"), None)
        accepted = [one for one in tried if one.verdict == "green"]
        if reds:
            control = await self._try(subject, CONTROL, budget)
            if control.verdict != "green":
                why = f"it did not pass the work as it is when it was asked again: {control.reason}"
                return Proof(ProofResult.NOT_PROVABLE, None, why, (*tried, control))
            is_content = any(red.counterfactual.is_content for red in reds)
            grade = Grade.CONTENT if is_content else Grade.PRESENCE
            return Proof(ProofResult.PROVED, grade, "", (*tried, control))
        if silent is not None or not accepted:
            return Proof(ProofResult.NOT_PROVABLE, None, silent or "there is nothing to break", tuple(tried))
        kinds = "; ".join(f"{one.counterfactual.kind}" for one in accepted)
        return Proof(ProofResult.CANNOT_FAIL, None, f"it also passed the work with {kinds}", tuple(tried))

    async def _try(self, subject: Subject, counterfactual: Counterfactual, budget: Budget) -> Tried:
        start = time.monotonic()
        try:
            if budget.left <= 0:
                raise RunnerTimeout("it took too long")
            verdict = await self._asked(subject, counterfactual, budget.left)
        except RunnerTimeout:
            return Tried(counterfactual, "none", "it took too long", time.monotonic() - start)
        except RunnerError as error:
            return Tried(counterfactual, "none", error.message, time.monotonic() - start)
        seconds = time.monotonic() - start
        if isinstance(verdict, Passed):
            return Tried(counterfactual, "green", "", seconds)
        if not isinstance(verdict, NeedsWork):
            return Tried(counterfactual, "none", "it handed the review back", seconds)
        why = doubt(verdict, counterfactual.contents)
        if why:
            return Tried(counterfactual, "none", why, seconds)
        return Tried(counterfactual, "red", verdict.feedback.partition("\n")[0][:200], seconds)

    async def _asked(self, subject: Subject, counterfactual: Counterfactual, seconds: float) -> Verdict:
        trial = subject.trial
        folder = written(counterfactual, trial, next(subject.numbers))
        broken = await to_thread.run_sync(folder.__enter__)
        try:
            seen = broken.changes if trial.project or self._has_mounts else None
            try:
                return await trial.ask(broken.root, seconds, seen)
            except RunnerError as error:
                if trial.project or seen is None or not isinstance(error.__cause__, MountsRefused):
                    raise
                # The program is in a copy anyway; the mounts only keep what it writes out of the project.
                self._has_mounts = False
                return await trial.ask(broken.root, seconds, None)
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(folder.__exit__, None, None, None)

    async def mutants_of(self, trial: Trial, number: int, budget: Budget) -> AsyncIterator[Tried]:
        """Ask a gate about so many mutants, each with one fault in one file, to the last."""
        # The numbers go on after those of the proof.
        subject = Subject(trial, await to_thread.run_sync(contents_of, trial), numbers=count(MAX_TRIES + 2))
        random = Random(self._seed(f"{trial.seed} one by one"))
        _, changed_since = await self._before(subject)
        of_file = [mutations({path: content}, random, changed_since) for path, content in subject.files.items()]
        while of_file and number:
            one = random.choice(of_file)
            if counterfactual := next(one, None):
                number -= 1
                yield await self._try(subject, counterfactual, budget)
            else:
                of_file.remove(one)

    async def _series(self, subject: Subject) -> Generator[Counterfactual, bool, None]:
        before, changed_since = await self._before(subject)

        def plan() -> Generator[Counterfactual, bool, None]:
            faults = mutations(subject.files, Random(self._seed(subject.trial.seed)), changed_since)
            is_known = subject.key is not None and self._kept.has(_refusal(subject.key))
            return series(subject.files, faults, refused(subject.files, before), is_known=is_known)

        return await to_thread.run_sync(plan)

    async def _before(self, subject: Subject) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        """Return what the last refused attempt had, and what the work is compared with to find its change."""
        before = await to_thread.run_sync(self._kept.refused, subject.trial.place)
        return before, before or await self._committed([*subject.files])

    def _subject(self, trial: Trial, key: str | None) -> Subject | Proof:
        """Return a gate with what it is tried on; a proof that is none if the user's samples prove nothing."""
        files = contents_of(trial)
        if trial.must_fail and len(files) != 1:
            why = f"must_fail stands for one output, and {len(files)} are judged"
            return Proof(ProofResult.NOT_PROVABLE, reason=why)
        samples: list[Counterfactual] = []
        for sample in trial.must_fail[:MAX_TRIES]:
            try:
                content = read_regular(sample, [self._project], limit=MAX_SAMPLE)
            except (OSError, PathRefused):
                return Proof(ProofResult.NOT_PROVABLE, reason=f"must_fail names {sample!r}, which is not there")
            samples.append(Counterfactual(f"sample: {sample}", dict.fromkeys(files, content)))
        if samples and key:
            contents = sorted((sample.kind, *sample.contents.values()) for sample in samples)
            key = sha256(repr((key, contents)).encode("utf-8", "surrogatepass")).hexdigest()
        return Subject(trial, files, samples, key)

    def _keep_refused(self, trial: Trial) -> None:
        self._kept.refuse(trial.place, contents_of(trial))

    def _keep(self, subject: Subject, proof: Proof) -> None:
        """Remember what holds for other sessions, and whether the gate cannot fail."""
        if proof.result is ProofResult.NOT_PROVABLE:
            return
        self._kept.note_weak(subject.trial.reviewer, proof.reason if proof.result is ProofResult.CANNOT_FAIL else None)
        if proof.result is ProofResult.PROVED and subject.key:
            self._kept.add(_refusal(subject.key))
            if subject.holds and proof.grade is Grade.CONTENT:
                self._kept.add(subject.key)

    def _seed(self, words: str) -> bytes:
        if self._secret is None:
            self._secret = self._kept.secret()
        return sha256(self._secret + words.encode("utf-8", "surrogatepass")).digest()


def _in_turn(samples: Sequence[Counterfactual]) -> Generator[Counterfactual, bool, None]:
    # A list has no `send`; the plan has to learn what was refused.
    yield from (sample for sample in samples)


def _refusal(key: str) -> str:
    """Return where it is remembered that a gate has refused broken work: that decides what it is asked first."""
    return sha256(f"refuses {key}".encode()).hexdigest()


def prover_of(project: Path) -> GateProver:
    """Return the prover of a project."""
    return GateProver(project, user_state_dir(os.environ), partial(committed, project))


def budget_of(seconds: Iterable[float]) -> Budget:
    """Return the time for the proofs of a step whose honest runs took so long."""
    return Budget(max(MIN_SECONDS, 2 * sum(seconds)))
