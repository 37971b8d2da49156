"""What was reported of a step, attempt by attempt, and what came of each. Pure.

Attempts are numbered by their reports: the same files reported again are the same attempt, and an attempt that was
given back is one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from deepwork.models.history import (
    Attempt,
    EventKind,
    GivenBack,
    HistoryEntry,
    KeptFile,
    NoVerdict,
    PersonAsked,
    Verdict,
)
from deepwork.models.sessions import Session
from deepwork.sessions.standing import numbered


@dataclass
class Reported:
    """One attempt at a step.

    Attributes:
        at: When it was reported first.
        asked: The person who was asked about it last, and when; None before the first question.
        decided: What that person has decided, the newest first of each review; empty as long as they have not.
    """

    number: int
    at: str
    attempt: Attempt
    given_back: bool = False
    asked: PersonAsked | None = None
    asked_at: str = ""
    verdicts: list[Verdict] = field(default_factory=list)
    failures: list[NoVerdict] = field(default_factory=list)
    decided: list[Verdict] = field(default_factory=list)

    @property
    def outputs(self) -> list[KeptFile]:
        """The files that were reported, as far as they are known."""
        if self.attempt.contents:
            return [file for file in self.attempt.contents if file.output is not None]
        return [KeptFile(path=path, digest="", output="") for path in self.attempt.files or ()]

    @property
    def inputs(self) -> list[KeptFile]:
        """The files on which the work builds, as they were then."""
        return [file for file in self.attempt.contents if file.output is None]

    def file(self, path: str) -> KeptFile | None:
        """Return what is known of a file of this attempt."""
        return next((file for file in self.attempt.contents if file.path == path), None)

    @property
    def result(self) -> str:
        """What came of it: waiting, needs_work, passed or not_judged."""
        if self.asked and not self.decided:
            return "waiting"
        last = self.decided or self.verdicts
        if any(not verdict.passed for verdict in (*last, *self.verdicts)):
            return "needs_work"
        return "passed" if last and not self.failures else "not_judged"


def attempts_of(session: Session, step_id: str) -> list[Reported]:
    """Return all attempts at a step, also those before it was begun again, the first one first."""
    attempts: list[Reported] = []
    for number, entry in numbered(session, step_id):
        detail = entry.detail
        if isinstance(detail, Attempt) and number > len(attempts):
            attempts.append(Reported(number, entry.at, detail))
        elif isinstance(detail, Attempt):  # what the reviewers say of the same files now is what counts
            last = attempts[-1]
            last.given_back, last.verdicts, last.failures = False, [], []
        elif attempts:
            _add(attempts[-1], detail, entry.at)
    return attempts


def _add(reported: Reported, detail: object, at: str) -> None:
    match detail:
        case GivenBack():
            reported.given_back = True
        case PersonAsked():
            reported.asked, reported.asked_at, reported.decided = detail, at, []
        case Verdict() if detail.by is not None:
            reported.decided.append(detail)
        case Verdict() if reported.decided and detail.runner in {verdict.runner for verdict in reported.decided}:
            pass  # the same decision, once the step is reported again
        case Verdict():
            reported.verdicts.append(detail)
        case NoVerdict():
            reported.failures.append(detail)


def times_asked(session: Session, step_id: str) -> int:
    """Return how often a person was asked about a step."""
    return sum(entry.step_id == step_id and entry.kind == EventKind.PERSON_ASKED for entry in session.history)


def begun_with(session: Session, step_id: str) -> dict[str, KeptFile]:
    """Return the files of a step as earlier steps have reported them last, as far as that is known."""
    first = next((i for i, entry in enumerate(session.history) if _is_attempt_at(entry, step_id)), 0)
    paths = {file.path for reported in attempts_of(session, step_id) for file in reported.outputs}
    files: dict[str, KeptFile] = {}
    for entry in session.history[:first]:
        if isinstance(entry.detail, Attempt):
            files.update({file.path: file for file in entry.detail.contents if file.path in paths})
    return files


def kept_files(session: Session, step_id: str) -> Callable[[int, str], KeptFile | None]:
    """Return what finds a file of an attempt by its path; attempt 0 is what the step began with."""
    attempts = {reported.number: reported for reported in attempts_of(session, step_id)}
    begun = begun_with(session, step_id)

    def kept_file(attempt: int, path: str) -> KeptFile | None:
        return attempts[attempt].file(path) if attempt in attempts else begun.get(path) if attempt == 0 else None

    return kept_file


def _is_attempt_at(entry: HistoryEntry, step_id: str) -> bool:
    return entry.step_id == step_id and entry.kind == EventKind.ATTEMPT
