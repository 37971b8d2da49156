"""Gates that were seen red: before the pass of a repeatable gate counts, it has to refuse this very work, broken."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Literal

from anyio import to_thread

from deepwork.errors import PathRefused, RunnerError, RunnerTimeout
from deepwork.gate.counterfactuals import CONTROL, Counterfactual, empty, missing, mutations
from deepwork.gate.red import doubt
from deepwork.models.reviews import NeedsWork, Passed, Verdict
from deepwork.paths.folder import Folder
from deepwork.paths.paths import read_regular

MAX_TRIES = 3
MIN_SECONDS = 60.0
MAX_SAMPLE = 16 * 1024 * 1024
SECRET = "proof-secret"
KEPT = "proofs"
MAX_KEPT = 2000

Policy = Literal["off", "warn", "hold"]
POLICIES: tuple[Policy, ...] = ("off", "warn", "hold")
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
        key: What a proof holds for beyond this attempt; None if it holds for this attempt alone.
    """

    gate: str
    files: Mapping[str, bytes]
    samples: Sequence[str]
    ask: Callable[[Counterfactual, float], Awaitable[Verdict]]
    seconds: float
    seed: str
    key: str | None = None


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
    """

    def __init__(self, policy: Policy, project: Path, state: Path | None) -> None:
        self.policy = policy
        self._project = project
        self._state = state
        self._secret: bytes | None = None

    async def prove(self, subject: Subject, budget: Budget, *, tries: int = MAX_TRIES) -> Proof:
        """Ask a gate about broken work until it refuses it, and then about the honest work again."""
        is_kept = subject.key is not None and await to_thread.run_sync(self._has_kept, subject.key)
        if is_kept:
            return Proof(ProofResult.PROVED, Grade.CONTENT, "it was proved before")
        planned: tuple[list[Counterfactual], str] = await to_thread.run_sync(self._plan, subject, tries)
        plan, problem = planned
        if problem:
            return Proof(ProofResult.NOT_PROVABLE, reason=problem)
        proof = await self._tried(subject, plan, budget)
        await to_thread.run_sync(self._keep, subject, proof)
        return proof

    async def _tried(self, subject: Subject, plan: Iterable[Counterfactual], budget: Budget) -> Proof:
        tried: list[Tried] = []
        for counterfactual in plan:
            tried.append(await self._try(subject, counterfactual, budget))
            if tried[-1].verdict == "red":
                break
        reds = [one for one in tried if one.verdict == "red"]
        silent = next((one.reason for one in tried if one.verdict == "none"), None)
        accepted = [one for one in tried if one.verdict == "green"]
        if reds:
            control = await self._try(subject, CONTROL, budget)
            if control.verdict != "green":
                why = f"it did not pass the work as it is when it was asked again: {control.reason}"
                return Proof(ProofResult.NOT_PROVABLE, None, why, (*tried, control))
            grade = Grade.CONTENT if reds[0].counterfactual.is_content else Grade.PRESENCE
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
        of_file = [mutations({path: content}, random) for path, content in subject.files.items()]
        while of_file and count:
            one = random.choice(of_file)
            if counterfactual := next(one, None):
                count -= 1
                yield await self._try(subject, counterfactual, budget)
            else:
                of_file.remove(one)

    def _plan(self, subject: Subject, tries: int) -> tuple[list[Counterfactual], str]:
        """Return what the gate is asked about, and why there is nothing, if so.

        What has to be read comes first: a gate that refuses it is proved with one run. Missing work is the last resort.
        """
        if subject.samples:
            return self._samples(subject)
        random = Random(self._seed(subject.seed))
        chosen = [one for one, _ in zip(mutations(subject.files, random), range(tries - 1), strict=False)]
        without = [missing(subject.files), empty(subject.files)]
        return [*chosen, *without[: max(1, tries - len(chosen))]], ""

    def _samples(self, subject: Subject) -> tuple[list[Counterfactual], str]:
        if len(subject.files) != 1:
            return [], f"must_fail stands for one output, and {len(subject.files)} are judged"
        [path] = subject.files
        plan: list[Counterfactual] = []
        for sample in subject.samples[:MAX_TRIES]:
            try:
                content = read_regular(sample, [self._project], limit=MAX_SAMPLE)
            except (OSError, PathRefused):
                return [], f"must_fail names {sample!r}, which is not there"
            plan.append(Counterfactual(f"sample: {sample}", {path: content}))
        return plan, ""

    def _seed(self, words: str) -> bytes:
        if self._secret is None:
            self._secret = self._read_secret()
        return sha256(self._secret + words.encode("utf-8", "surrogatepass")).digest()

    def _read_secret(self) -> bytes:
        if self._state is None:
            return b""
        with suppress(OSError):
            self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Folder.open(self._state, inside=self._state) as folder:
                if secret := folder.read(SECRET):
                    return secret
                secret = secrets.token_bytes(32)
                folder.replace(SECRET, secret)
                return secret
        return secrets.token_bytes(32)

    # What holds for other sessions, and which gates cannot fail

    def _has_kept(self, key: str) -> bool:
        return self._state is not None and (self._state / KEPT / key).is_file()

    def _keep(self, subject: Subject, proof: Proof) -> None:
        if self._state is None:
            return
        with suppress(OSError, ValueError):
            folder_path = self._state / KEPT
            folder_path.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Folder.open(folder_path, inside=self._state) as folder:
                if subject.key and proof.grade is Grade.CONTENT:
                    folder.replace(subject.key, b"")
                    for left in sorted(folder_path.glob("[0-9a-f]*"), key=lambda file: file.stat().st_mtime)[
                        :-MAX_KEPT
                    ]:
                        left.unlink(missing_ok=True)
                weak = self.weak()
                if proof.result is ProofResult.CANNOT_FAIL:
                    changed = {**weak, subject.gate: proof.reason}
                elif proof.result is ProofResult.PROVED:
                    changed = {name: reason for name, reason in weak.items() if name != subject.gate}
                else:
                    changed = weak
                if changed != weak:
                    folder.replace(self._weak_name, json.dumps(changed).encode())

    @property
    def _weak_name(self) -> str:
        return f"weak-{sha256(str(self._project).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"

    def weak(self) -> dict[str, str]:
        """Return the gates of this project that were seen to pass broken work, and what they passed."""
        if self._state is None:
            return {}
        try:
            found = json.loads((self._state / KEPT / self._weak_name).read_bytes())
        except (OSError, ValueError):
            return {}
        is_known = isinstance(found, dict) and all(isinstance(reason, str) for reason in found.values())
        return found if is_known else {}


def budget_of(seconds: Iterable[float]) -> Budget:
    """Return the time for the proofs of a step whose honest runs took so long."""
    return Budget(max(MIN_SECONDS, 2 * sum(seconds)))


def notices(gate: str, proof: Proof) -> Iterator[str]:
    """Yield what the agent has to know of a proof."""
    if proof.result is ProofResult.CANNOT_FAIL:
        yield f"The pass of {gate!r} says nothing: {proof.reason}. {ONLY_USER}"
    elif proof.result is ProofResult.NOT_PROVABLE:
        yield f"It is not proved here that {gate!r} can refuse this work: {proof.reason.removesuffix('.')}."
