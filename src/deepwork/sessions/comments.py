"""Comments of people on lines of a step's files: where each stands now, and what became of it. Pure.

A comment moves with its lines from attempt to attempt, as far as the contents of the attempts are known. Where its
lines were changed it stands at what is there now; where that is gone, it is outdated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from deepwork.models.history import CommentAnswered, CommentResolved, Note, Verdict
from deepwork.models.sessions import Session
from deepwork.sessions.attempts import attempts_of
from deepwork.sessions.lines import Held, Moves, Place, found, lines_of, moves

# The content of a file of an attempt, as far as it is kept here.
ContentOf = Callable[[int, str], bytes | None]

_ANSWER = re.compile(r"^\s*[-*]?\s*\[?(c\d{1,9})\]?\s*:\s*(.*)$")
MAX_ANSWER = 4000


class CommentState(StrEnum):
    """What became of a comment."""

    OPEN = "open"
    CHANGED = "changed"
    OUTDATED = "outdated"
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Answer:
    """What the agent has answered."""

    text: str
    at: str
    attempt: int | None


@dataclass(frozen=True)
class Comment:
    """A comment of a person.

    Attributes:
        note: The comment as it was written.
        place: Where its lines are in `place_attempt`, or what stands in their place.
    """

    id: str
    note: Note
    at: str
    attempt: int
    file: str
    written: Place
    answers: tuple[Answer, ...] = ()
    is_resolved: bool = False
    is_changed: bool = False
    place: Place | None = None
    place_attempt: int = 0

    @property
    def state(self) -> CommentState:
        """What became of it by the newest attempt."""
        if self.is_resolved:
            return CommentState.RESOLVED
        if self.place is None:
            return CommentState.OUTDATED
        return CommentState.CHANGED if self.is_changed else CommentState.OPEN

    @property
    def is_unmet(self) -> bool:
        """True if the agent has neither changed its lines nor answered it."""
        return self.note.must and self.state is CommentState.OPEN and not self.answers


def comments_of(session: Session, step_id: str) -> list[Comment]:
    """Return all comments on a step, the oldest first, as they were written."""
    comments: dict[str, Comment] = {}
    for entry in session.history:
        detail = entry.detail
        if entry.step_id != step_id:
            continue
        match detail:
            case Note():
                if (comment := _written(detail, entry.at)) is not None:
                    comments[comment.id] = comment
            case Verdict(by=str(), passed=True):  # what was said before is settled
                comments = {name: replace(comment, is_resolved=True) for name, comment in comments.items()}
            case CommentAnswered() if detail.id in comments:
                known = comments[detail.id]
                answer = Answer(detail.text, entry.at, detail.attempt)
                comments[detail.id] = replace(known, answers=(*known.answers, answer))
            case CommentResolved() if detail.id in comments:
                comments[detail.id] = replace(comments[detail.id], is_resolved=True)
    return [*comments.values()]


def _written(note: Note, at: str) -> Comment | None:
    """Return a note that is a comment as it was written; None for any other."""
    if note.id is None or note.file is None or note.line is None or note.attempt is None:
        return None
    return Comment(note.id, note, at, note.attempt, note.file, Place(note.line, max(note.line, note.end_line or 0)))


@dataclass
class Placing:
    """Finds comments in later attempts; what it has read of their contents once, it knows."""

    content: ContentOf
    _lines: dict[tuple[int, str], tuple[bytes, ...] | None] = field(default_factory=dict)
    _moves: dict[tuple[int, int, str], Moves] = field(default_factory=dict)

    def placed(self, comment: Comment, attempts: Sequence[int]) -> Comment:
        """Return a comment with its place in the last of these attempts."""
        place: Place | None = comment.written
        number, is_changed = comment.attempt, False
        later = [attempt for attempt in attempts if attempt > comment.attempt]
        for attempt in later:
            new = self._of(attempt, comment.file)
            if new is None:
                continue
            old = self._of(number, comment.file)
            if old is None:
                anchor = comment.note.anchor
                place = found(new, Held(anchor.lines, anchor.before, anchor.after)) if anchor else None
                is_changed = False
            elif place is not None and place.end_line <= len(old):
                key = number, attempt, comment.file
                between = self._moves[key] = self._moves.get(key) or moves(old, new)
                same = between.same(place)
                is_changed = is_changed or same is None
                place = same or between.around(place)
            else:
                place = None
            number = attempt
        newest = max([comment.attempt, *later])
        if number != newest:  # the file is no longer reported, or its content is not kept here
            place = None
        return replace(comment, place=place, place_attempt=newest, is_changed=is_changed)

    def _of(self, attempt: int, path: str) -> tuple[bytes, ...] | None:
        key = attempt, path
        if key not in self._lines:
            content = self.content(attempt, path)
            self._lines[key] = None if content is None else lines_of(content)
        return self._lines[key]


def placed_comments(session: Session, step_id: str, content: ContentOf) -> list[Comment]:
    """Return all comments on a step, each with its place in the newest attempt."""
    comments = comments_of(session, step_id)
    if not comments:
        return []
    attempts = [reported.number for reported in attempts_of(session, step_id)]
    placing = Placing(content)
    return [placing.placed(comment, attempts) for comment in comments]


def answers_in(notes: str | None, ids: Iterable[str]) -> Mapping[str, str]:
    """Return the answers in an agent's notes, a line `ID: answer` each, by the ids of the comments."""
    known, answers = {*ids}, dict[str, str]()
    for line in (notes or "").splitlines():
        match = _ANSWER.match(line)
        if match and match[1] in known and match[2].strip():
            answers[match[1]] = match[2].strip()[:MAX_ANSWER]
    return answers
