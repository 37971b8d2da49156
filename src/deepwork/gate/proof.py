"""Gates that were seen red: before the pass of a repeatable gate counts, it has to refuse this very work, broken."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Literal

from anyio import to_thread

from deepwork.errors import PathRefused, RunnerError, RunnerTimeout
from deepwork.gate.counterfactuals import CONTROL, Counterfactual, mutations, refused, series
from deepwork.gate.fingerprints import digest_of
from deepwork.gate.kept import KeptProofs
from deepwork.gate.red import doubt
from deepwork.models.reviews import NeedsWork, Passed, Verdict
from deepwork.paths.paths import read_regular

MAX_TRIES = 3
MIN_SECONDS = 60.0
MAX_SAMPLE = 16 * 1024 * 1024

Policy = Literal["off", "warn", "hold"]
POLICIES: tuple[Policy, ...] = ("off", "warn", "hold")
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


@dataclass(frozen=True)
class Subject:
    """The gate and the work on which it is tried.

    Attributes:
        gate: The name of the reviewer.
        files: The judged files and what they hold.
        samples: What the user says that the gate must refuse, by the path of each.
        ask: Asks the gate about a counterfactual, for so many seconds; a timeout and a crash are a RunnerError.
        seconds: How long it took with the honest work.
        seed: Differs for other work and other gates.
        place: Where the work of a refused attempt is kept.
        key: What changes with the gate, its criteria and the inputs; None if nothing tells that.
        holds: Whether a proof holds while the key stays the same, and not for this attempt alone.
    """

    gate: str
    files: Mapping[str, bytes]
    samples: Sequence[str]
    ask: Callable[[Counterfactual, float], Awaitable[Verdict]]
    seconds: float
    seed: str
    place: str
    key: str | None = None
    holds: bool = False


@dataclass
class Budget:
    """The time that all proofs of a step may take."""

    seconds: float
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self._start)


class Prover:
    """Tries gates on broken work.

    Args:
        policy: What follows if a gate cannot fail: `warn` says so, `hold` lets nothing pass.
        project: The project, in which samples lie.
        state: The folder of the user in which the secret and kept proofs are; None keeps nothing.
        committed: Returns what files of the project held before the work on them, by their paths.
    """

    def __init__(self, policy: Policy, project: Path, state: Path | None, committed: Committed) -> None:
        self.policy = policy
        self._committed = committed
        self.kept = KeptProofs(project, state)
        self._project = project
        self._secret: bytes | None = None

    async def prove(self, subject: Subject, budget: Budget) -> Proof:
        """Ask a gate about broken work until it refuses it, and then about the honest work again."""
        read: tuple[list[Counterfactual], str] = await to_thread.run_sync(self._samples, subject)
        samples, problem = read
        if problem:
            return Proof(ProofResult.NOT_PROVABLE, reason=problem)
        if samples and subject.key:
            contents = sorted((sample.kind, *sample.contents.values()) for sample in samples)
            subject = replace(subject, key=digest_of(subject.key, contents))
        if subject.key and subject.holds and await to_thread.run_sync(self.kept.has, subject.key):
            return Proof(ProofResult.PROVED, Grade.CONTENT, "it was proved before")
        plan = _in_turn(samples) if samples else await self._series(subject)
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
            verdict = await subject.ask(counterfactual, budget.left)
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

    async def mutants_of(self, subject: Subject, count: int, budget: Budget) -> AsyncIterator[Tried]:
        """Ask a gate about so many mutants, each with one fault in one file, whatever it says of them."""
        random = Random(self._seed(f"{subject.seed} one by one"))
        _, changed_since = await self._before(subject)
        of_file = [mutations({path: content}, random, changed_since) for path, content in subject.files.items()]
        while of_file and count:
            one = random.choice(of_file)
            if counterfactual := next(one, None):
                count -= 1
                yield await self._try(subject, counterfactual, budget)
            else:
                of_file.remove(one)

    async def _series(self, subject: Subject) -> Generator[Counterfactual, bool, None]:
        before, changed_since = await self._before(subject)

        def plan() -> Generator[Counterfactual, bool, None]:
            faults = mutations(subject.files, Random(self._seed(subject.seed)), changed_since)
            is_known = subject.key is not None and self.kept.has(_refusal(subject.key))
            return series(subject.files, faults, refused(subject.files, before), is_known=is_known)

        return await to_thread.run_sync(plan)

    async def _before(self, subject: Subject) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
        """Return what the last refused attempt had, and what the work is compared with to find its change."""
        before = await to_thread.run_sync(self.kept.refused, subject.place)
        return before, before or await self._committed([*subject.files])

    def _samples(self, subject: Subject) -> tuple[list[Counterfactual], str]:
        """Return the work as the user's samples have it, and why they prove nothing, if so."""
        if subject.samples and len(subject.files) != 1:
            return [], f"must_fail stands for one output, and {len(subject.files)} are judged"
        path = next(iter(subject.files), "")
        plan: list[Counterfactual] = []
        for sample in subject.samples[:MAX_TRIES]:
            try:
                content = read_regular(sample, [self._project], limit=MAX_SAMPLE)
            except (OSError, PathRefused):
                return [], f"must_fail names {sample!r}, which is not there"
            plan.append(Counterfactual(f"sample: {sample}", {path: content}))
        return plan, ""

    def _keep(self, subject: Subject, proof: Proof) -> None:
        """Remember what holds for other sessions, and whether the gate cannot fail."""
        if proof.result is ProofResult.NOT_PROVABLE:
            return
        self.kept.note_weak(subject.gate, proof.reason if proof.result is ProofResult.CANNOT_FAIL else None)
        if proof.result is ProofResult.PROVED and subject.key:
            self.kept.add(_refusal(subject.key))
            if subject.holds and proof.grade is Grade.CONTENT:
                self.kept.add(subject.key)

    def _seed(self, words: str) -> bytes:
        if self._secret is None:
            self._secret = self.kept.secret()
        return sha256(self._secret + words.encode("utf-8", "surrogatepass")).digest()


def _in_turn(samples: Sequence[Counterfactual]) -> Generator[Counterfactual, bool, None]:
    # A list has no `send`, by which the plan learns what was refused.
    yield from (sample for sample in samples)


def _refusal(key: str) -> str:
    """Return where it is remembered that a gate has refused broken work: that decides what it is asked first."""
    return digest_of("refuses", key)


def budget_of(seconds: Iterable[float]) -> Budget:
    """Return the time for the proofs of a step whose honest runs took so long."""
    return Budget(max(MIN_SECONDS, 2 * sum(seconds)))


def notices(gate: str, proof: Proof) -> Iterator[str]:
    """Yield what the agent has to know of a proof."""
    if proof.result is ProofResult.CANNOT_FAIL:
        yield f"The pass of {gate!r} says nothing: {proof.reason}. {ONLY_USER}"
    elif proof.result is ProofResult.NOT_PROVABLE:
        yield f"It is not proved here that {gate!r} can refuse this work: {proof.reason.removesuffix('.')}."
