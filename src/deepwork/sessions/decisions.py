"""What people who review a step add to its session: that they were asked, what they decide, their comments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from deepwork.errors import ArgumentError, ItemChanged
from deepwork.models import history
from deepwork.models.history import KeptFile
from deepwork.models.sessions import Session
from deepwork.models.standing import PERSON, WaitKind
from deepwork.paths.paths import is_utf8
from deepwork.ports.inbox import Answer, Answerer
from deepwork.sessions.attempts import Reported, attempts_of
from deepwork.sessions.comments import ContentOf
from deepwork.sessions.lines import Place, held, lines_of
from deepwork.sessions.standing import waiting_steps
from deepwork.sessions.transitions import record
from deepwork.text import is_blank, shorten

MAX_COMMENTS = 2000
MAX_COMMENT = 10_000
MAX_QUOTED = 400


@dataclass(frozen=True)
class NewComment:
    """A comment as a person has written it: on lines of a file of the attempt, counted from 1.

    Attributes:
        suggestion: The text that is to replace these lines; an empty one removes them.
    """

    file: str
    line: int
    text: str
    must: bool = False
    end_line: int | None = None
    suggestion: str | None = None


def read_comments(items: Sequence[Mapping[str, Any]]) -> list[NewComment]:
    """Read comments from JSON.

    Raises:
        ArgumentError: One has another shape, or there are too many; nothing was changed.
    """
    if not isinstance(items, list | tuple) or len(items) > MAX_COMMENTS:
        raise ArgumentError(f"comments are a list of at most {MAX_COMMENTS:,}; nothing was changed")
    return [_comment(number, item) for number, item in enumerate(items, 1)]


_FIELDS: Mapping[str, Any] = {
    "file": str,
    "line": int,
    "end_line": int | None,
    "text": str,
    "must": bool,
    "suggestion": str | None,
}


def _comment(number: int, item: Any) -> NewComment:
    if not isinstance(item, Mapping):
        raise ArgumentError(f"comment {number} is not an object; nothing was changed")
    known = {"must": False, **item}
    problems = [name for name, kind in _FIELDS.items() if not _is_of(kind, known.get(name))]
    unknown = [name for name in item if name not in _FIELDS]
    if unknown or problems:
        named = ", ".join([*problems, *unknown])[:200]
        raise ArgumentError(
            f"comment {number} is not {{file, line, end_line?, text, must?, suggestion?}}: see {named}; nothing was "
            "changed"
        )
    if not all(is_utf8(value) for value in item.values() if isinstance(value, str)):
        raise ArgumentError(
            f"comment {number} has half of a surrogate pair, which is no character; nothing was changed"
        )
    return NewComment(**item)


def _is_of(kind: Any, value: object) -> bool:
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def asked_about(session: Session, step_id: str) -> Reported | None:
    """Return the attempt about which a person was asked and has not decided; None if none waits."""
    if not any(step.step_id == step_id and step.kind is WaitKind.PERSON for step in waiting_steps(session)):
        return None
    return attempts_of(session, step_id)[-1]


@dataclass(frozen=True)
class PersonDecision:
    """What a person has decided on an attempt.

    Attributes:
        passed: Whether the work passes.
        text: What they say of it as a whole.
        comments: What they say of single lines.
        state: The state of the waiting step as they have seen it; None takes it as it is.
        author: Who they are.
    """

    passed: bool
    text: str
    comments: Sequence[NewComment]
    state: str | None
    author: Mapping[str, Any]

    @classmethod
    def of(cls, answer: Answer, by: Answerer) -> Self:
        """Read what a person has answered.

        Raises:
            ArgumentError: A comment has another shape, or there are too many; nothing was changed.
        """
        comments = read_comments(answer.comments)
        return cls(answer.action == "pass", answer.text or "", comments, answer.state, by.recorded())

    @property
    def summary(self) -> str:
        """The feedback of an attempt that needs work."""
        count = len(self.comments)
        return self.text.strip() or f"{count} {'comment' if count == 1 else 'comments'}"

    def verdict(self, review: history.AskedReview) -> history.Verdict:
        """Return their verdict on one of the reviews that they were asked for."""
        return history.Verdict(
            run_each=review.run_each,
            file=review.file,
            runner=review.runner,
            passed=self.passed,
            feedback="" if self.passed and is_blank(self.text) else self.summary,
            criteria=[history.Criterion(criterion=name, passed=self.passed) for name in review.asked],
            asked=review.asked,
            key=review.key,
            subject=review.subject,
            by=PERSON,
            **self.author,
        )


def decided(session: Session, step_id: str, decision: PersonDecision, content: ContentOf, *, now: str) -> Session:
    """Record the decision of a person on the attempt that waits for them, and their comments on its content.

    Raises:
        ItemChanged: Another person was first, or something else was reported; nothing was changed.
        ArgumentError: A comment is on no line of the attempt, or changes are asked for without a word.
    """
    waiting = next((step for step in waiting_steps(session) if step.step_id == step_id), None)
    reported = asked_about(session, step_id)
    if waiting is None or reported is None or reported.asked is None or decision.state not in (None, waiting.state):
        raise ItemChanged(
            f"Step {step_id!r} of session {session.session_id!r} no longer waits as you saw it: it was decided, or "
            "reported again; nothing was changed",
            hint="Look at it again, then answer.",
        )
    if not decision.passed and is_blank(decision.text) and not decision.comments:
        raise ArgumentError("Changes are asked for by a text or by comments, and there are none; nothing was changed")
    notes = _notes(session, reported, decision.comments, content)
    for review in reported.asked.reviews:
        session = record(session, now, decision.verdict(review), step_id)
    for note in notes:
        detail = note.model_copy(update={"at": now, "by": PERSON, **decision.author})
        session = record(session, now, detail, step_id)
    return session


def resolved(session: Session, step_id: str, comment_id: str, author: Mapping[str, Any], *, now: str) -> Session:
    """Record that a person has settled a comment."""
    detail = history.CommentResolved(id=comment_id, by=PERSON, **author)
    return record(session, now, detail, step_id)


def answered(session: Session, step_id: str, answers: Mapping[str, str], attempt: int, *, now: str) -> Session:
    """Record what an agent has answered to comments."""
    for comment_id, text in answers.items():
        session = record(session, now, history.CommentAnswered(id=comment_id, text=text, attempt=attempt), step_id)
    return session


def _notes(
    session: Session, reported: Reported, comments: Iterable[NewComment], content: ContentOf
) -> list[history.Note]:
    count = sum(entry.kind == history.EventKind.NOTE and "id" in entry.stored for entry in session.history)
    lines: dict[str, Sequence[bytes]] = {}
    notes: list[history.Note] = []
    for number, comment in enumerate(comments, count + 1):
        if comment.file not in lines:
            lines[comment.file] = _lines(reported, comment.file, content)
        notes.append(_note(f"c{number}", reported, comment, lines[comment.file]))
    return notes


def _lines(reported: Reported, path: str, content: ContentOf) -> Sequence[bytes]:
    file: KeptFile | None = reported.file(path)
    text = content(reported.number, path) if file and file.output is not None else None
    if text is None:
        listed = ", ".join(file.path for file in reported.outputs if file.kept)
        raise ArgumentError(
            f"There is no content of {path!r} in attempt {reported.number} on this machine; nothing was changed",
            hint=f"Its files here: {shorten(listed, 500) or 'none'}.",
        )
    return lines_of(text)


def _note(comment_id: str, reported: Reported, comment: NewComment, lines: Sequence[bytes]) -> history.Note:
    end = comment.line if comment.end_line is None else comment.end_line
    where = f"{comment.file}:{comment.line}" + ("" if end == comment.line else f"-{end}")
    if not 1 <= comment.line <= end <= len(lines):
        raise ArgumentError(
            f"{where} is not in attempt {reported.number}, which has {len(lines)} lines there; nothing was changed"
        )
    if is_blank(comment.text) and comment.suggestion is None:
        raise ArgumentError(f"The comment on {where} says nothing; nothing was changed")
    if len(comment.text) > MAX_COMMENT or len(comment.suggestion or "") > MAX_COMMENT:
        raise ArgumentError(f"The comment on {where} has over {MAX_COMMENT:,} characters; nothing was changed")
    place = Place(comment.line, end)
    quoted = b"\n".join(lines[comment.line - 1 : end]).decode("utf-8", "backslashreplace")
    update: dict[str, Any] = {"suggestion": comment.suggestion} if comment.suggestion is not None else {}
    return history.Note(
        text=comment.text.strip(),
        id=comment_id,
        attempt=reported.number,
        file=comment.file,
        line=comment.line,
        end_line=end,
        quoted=shorten(quoted, MAX_QUOTED),
        must=comment.must,
        anchor=history.Anchor(**held(lines, place)._asdict()),
        **update,
    )
