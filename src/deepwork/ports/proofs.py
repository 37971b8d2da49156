"""Whether reviewers can refuse work at all: what tries them on broken work before their passes count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deepwork.errors import RunnerError
from deepwork.models.history import Proof
from deepwork.models.reviews import Verdict


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A reviewer with the work that it has judged, so that it can be tried on other contents.

    Attributes:
        reviewer: The name of the reviewer.
        run_each: Which of the reviews of the step it has held.
        passed: Whether it has passed the work.
        repeatable: Whether it may be asked again.
        copies: The folder with the copies that it has judged.
        files: Where the judged files lie in that folder, by their paths.
        project: The project's folder if the reviewer works there; None if it works in a folder of copies.
        must_fail: Files of the project that it must refuse in the place of the work.
        seconds: How long it took.
        seed: Differs for other work and for other reviewers.
        place: The same for all attempts of one step with this reviewer.
        key: Returns what changes with the reviewer, its criteria and the inputs; None if nothing tells that.
        ask: Asks the reviewer about other copies: takes their folder, for how many seconds, and what a program sees
            otherwise in the project (`seen` of `run_program`). Raises RunnerError if there is no verdict.
    """

    reviewer: str
    run_each: str
    passed: bool
    repeatable: bool
    copies: Path
    files: Mapping[str, str]
    project: Path | None
    must_fail: Sequence[str]
    seconds: float
    seed: str
    place: str
    key: Callable[[], Awaitable[str | None]]
    ask: Callable[[Path, float, Path | None], Awaitable[Verdict]]


@dataclass(frozen=True, kw_only=True)
class Proven:
    """What came of trying a reviewer.

    Attributes:
        proof: For the history.
        notice: What the agent has to know of it; empty if that is nothing.
        error: Why the pass says nothing; None unless the reviewer cannot fail. With `quality_gate.prove: hold` it takes
            the place of the pass.
    """

    proof: Proof
    notice: str = ""
    error: RunnerError | None = None


class Prover(ABC):
    """Tries reviewers that are `repeatable` on broken work."""

    @abstractmethod
    async def prove(self, trials: Sequence[Trial]) -> Sequence[Proven]:
        """Try reviewers that have passed the work, all those of a step together, and return what came of each."""

    @abstractmethod
    async def refused(self, trials: Sequence[Trial]) -> None:
        """Take note of the work that reviewers have refused: they are tried on it once they pass another."""

    @abstractmethod
    def weak(self) -> Mapping[str, str]:
        """Return the reviewers that were seen to pass broken work, and what they passed. It reads a file."""
