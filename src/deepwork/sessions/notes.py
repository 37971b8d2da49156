"""What an agent has to read before it goes on with a step: notes of its user, and the feedback of a failed review.

Both stand until the step is reported again. They are read from the JSON of a history: hooks import no models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deepwork.models.standing import PERSON
from deepwork.text import quoted_lines, shorten

if TYPE_CHECKING:
    from deepwork.models.sessions import Session

# The texts of one step may take so many characters: its instructions have to fit beside them.
MAX_NOTES = 4000
MAX_FEEDBACK = 2000
_ELSEWHERE = "`deepwork sessions history` shows everything"

_BEGUN, _COMPLETED, _ATTEMPT, _HANDED_BACK = "step_begun", "step_completed", "attempt", "review_handed_back"
_NOTE = "note"
_SETTLES_COMMENT = ("comment_answered", "comment_resolved")

# An entry of a history: its kind, its step, and its detail.
Entry = tuple[str, str | None, Mapping[str, Any]]


@dataclass(frozen=True)
class StepNote:
    """A text to the agent that works on a step."""

    step_id: str
    text: str
    is_of_person: bool
    at: str

    @property
    def quoted(self) -> str:
        """The note as an agent is told of it."""
        author = "Your user says" if self.is_of_person else "Somebody, not seen to be a person, says"
        return f"{author} about step {self.step_id!r}:\n{_quoted(self.text, MAX_NOTES)}"


def entries_of(session: Session) -> list[Entry]:
    """Return the history of a session."""
    return [(entry.kind, entry.step_id, entry.stored) for entry in session.history]


def entries_of_json(history: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Return the history of a session that was read without models.

    Raises:
        LookupError: It is not as this release writes it.
    """
    return [(entry["kind"], entry["step_id"], entry["detail"]) for entry in history]


def open_notes(entries: Sequence[Entry], step_id: str) -> list[StepNote]:
    """Return the notes on a step since it was reported last, the oldest first."""
    notes: list[StepNote] = []
    for kind, entry_step, detail in reversed(entries):
        if entry_step != step_id:
            continue
        if kind in (_BEGUN, _COMPLETED, _ATTEMPT, _HANDED_BACK):
            break
        if kind == _NOTE:
            notes += _note(step_id, detail)
    return notes[::-1]


def notes_on_report(entries: Sequence[Entry], step_id: str) -> list[StepNote]:
    """Return the notes that stood when a step was reported last, or came while it was reviewed, the oldest first."""
    notes: list[StepNote] = []
    is_completed = is_attempted = False
    for kind, entry_step, detail in reversed(entries):
        if entry_step != step_id:
            continue
        if kind == _BEGUN or (kind == _COMPLETED and (is_completed or is_attempted)):
            break
        if kind in (_ATTEMPT, _HANDED_BACK):
            if is_attempted:
                break
            is_attempted = True
        is_completed = is_completed or kind == _COMPLETED
        if kind == _NOTE:
            notes += _note(step_id, detail)
    return notes[::-1]


def open_feedback(entries: Sequence[Entry], step_id: str) -> str:
    """Return what the last review of a step found wrong, if nothing has settled it; else nothing.

    A review without a verdict settles nothing, and neither does beginning the step again.
    """
    texts: list[str] = []
    is_judged = False
    for kind, entry_step, detail in reversed(entries):
        if entry_step != step_id:
            continue
        if kind in (_BEGUN, _COMPLETED, "override") or (kind == _ATTEMPT and is_judged):
            break
        if kind == "verdict" and not detail.get("changed"):
            is_judged = True
            if detail.get("passed") is False and isinstance(text := detail.get("feedback"), str):
                texts.append(text)
    return "\n\n".join(dict.fromkeys(reversed(texts)))


def open_comments(entries: Sequence[Entry], step_id: str) -> list[str]:
    """Return the comments on lines without an answer or a decision, first the comments that must be met.

    Whether their lines were changed meanwhile is not looked at: that would mean to read files.
    """
    comments: dict[str, tuple[bool, str]] = {}
    for kind, entry_step, detail in entries:
        if entry_step != step_id:
            continue
        if kind == _NOTE and isinstance(comment_id := detail.get("id"), str):
            comments[comment_id] = bool(detail.get("must")), comment_line(detail)
        elif kind in _SETTLES_COMMENT:
            comments.pop(str(detail.get("id")), None)
        elif kind == "verdict" and detail.get("by") == PERSON and detail.get("passed") is True:
            comments.clear()
    return [text for _, text in sorted(comments.values(), key=lambda comment: not comment[0])]


def comment_line(detail: Mapping[str, Any]) -> str:
    """Return a comment with its id and its place, as it was written."""
    must = ", must" if detail.get("must") else ""
    return f"{detail['id']} ({detail.get('file')}:{detail.get('line')}{must}): {detail.get('text')}"


def open_texts(entries: Sequence[Entry], step_ids: Iterable[str]) -> list[str]:
    """Return what an agent has to read before it goes on with these steps: the notes of each, and then the feedback."""
    texts = []
    for step_id in step_ids:
        if notes := open_notes(entries, step_id):
            texts += quoted_notes(notes)
        if comments := open_comments(entries, step_id):
            how = "Answer each in notes, a line `ID: answer`"
            texts.append(f"Open comments of your user on step {step_id!r}. {how}.\n{_listed(comments)}")
        if feedback := open_feedback(entries, step_id):
            texts.append(f"The last review of step {step_id!r} failed:\n{_quoted(feedback, MAX_FEEDBACK)}")
    return texts


def quoted_notes(notes: Sequence[StepNote]) -> list[str]:
    """Return notes as an agent is told of them, each once; of more than fit the newest."""
    texts: list[str] = []
    room = MAX_NOTES
    for text in dict.fromkeys(note.quoted for note in reversed(notes)):
        room -= len(text)
        if texts and room < 0:
            texts.append(f"There are earlier notes; {_ELSEWHERE}.")
            break
        texts.append(text)
    return texts[::-1]


def _listed(comments: Sequence[str]) -> str:
    """Return as many comments as there is room for, each behind bars."""
    texts: list[str] = []
    room = MAX_NOTES
    for number, comment in enumerate(comments):
        text = _quoted(comment, MAX_NOTES // 2)
        room -= len(text)
        if room < 0:
            more = f"{len(comments) - number} more: call finished_step with the same outputs, or see"
            return "\n".join([*texts, f"{more} `deepwork gate comments`."])
        texts.append(text)
    return "\n".join(texts)


def _note(step_id: str, detail: Mapping[str, Any]) -> Iterator[StepNote]:
    text = detail.get("text")
    if isinstance(text, str) and text.strip() and not detail.get("id"):  # comments are told by their ids
        yield StepNote(step_id, text.strip(), detail.get("by") == PERSON, str(detail.get("at")))


def _quoted(text: str, limit: int) -> str:
    """Return a text behind bars; if it is cut, its end says where the rest is."""
    # Quoting can make a text much longer, so it is bounded before and after.
    whole = quoted_lines(text[: limit + 1])
    return whole if len(whole) <= limit else f"{shorten(whole, limit)}\n[Cut here; {_ELSEWHERE}.]"
