"""What a session's history has for an agent, and how messages of others are written for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from deepwork.models.standing import Head, paused_text
from deepwork.text import is_past, one_line, quoted_lines, shorten, visible, visible_lines

if TYPE_CHECKING:
    from deepwork.api import AgentMessage

MAX_BODY = 2000
MAX_ABOUT = 300
# Quoting makes a text longer; a single one has to fit into the quota of a minute.
MAX_QUOTED = 2 * MAX_BODY
# So much of a remark is looked for in a reply.
MAX_COMPARED = 1000
# The agent's own call tells it how a review has ended. Only if none has for so long, it is told here.
RESULT_SECONDS = 10
# An entry of a history, as it is stored.
Entry = Mapping[str, Any]

_PAUSES = ("paused", "unpaused")
_RESULTS = {"verdict": "has ended", "infrastructure": "has ended without a verdict"}
# What ends the time of a note: it was told with the reply to a report.
_REPORTS = ("step_begun", "step_completed", "attempt", "review_handed_back")


@dataclass(frozen=True)
class Text:
    """A text for a listener.

    Attributes:
        id: Which text it is, for as long as it waits.
        text: What the agent reads.
        body: The part that replies of our tools have word by word; empty if they never have it.
        parts: Texts that a reply has, each for itself, if it tells the same.
        index: Its place in the history of its session; None if it is of none.
        is_pause: Whether it tells of a pause or of its end.
        is_result: Whether the reply to a call of the agent tells the same.
        is_due: Whether the time has come to tell it.
    """

    id: str
    text: str
    body: str = ""
    parts: tuple[str, ...] = ()
    index: int | None = None
    is_pause: bool = False
    is_result: bool = False
    is_due: bool = True

    def shown(self, *, again: bool) -> str:
        """Return it with its id."""
        return f"[{visible(self.id)}{', again' if again else ''}] {visible_lines(self.text)}"

    def is_in(self, strings: Collection[str]) -> bool:
        """True if a reply has told it already."""
        is_quoted = bool(self.body) and any(self.body in string for string in strings)
        return is_quoted or (bool(self.parts) and all(part in strings for part in self.parts))


def news_of(head: Head, history: Sequence[Entry], heard: int, known: Collection[str]) -> Iterator[Text]:
    """Yield what of a history an agent has to hear. A pause that was lifted before it was heard is not told.

    Args:
        head: The session.
        history: All that happened in it.
        heard: So many entries need not be looked at.
        known: Ids of texts that were handed over.
    """
    pauses = [index for index, entry in enumerate(history) if entry["kind"] in _PAUSES]
    results = [index for index, entry in enumerate(history) if entry["kind"] in _RESULTS]
    for index in range(heard, len(history)):
        entry, text_id = history[index], _id(head, index)
        kind, detail = entry["kind"], entry.get("detail", {})
        step = f"step {entry.get('step_id')!r} of {_where(head)}"
        if kind == "note" and entry.get("step_id") and str(detail.get("text") or "").strip():
            yield _remark(text_id, index, entry, head)
        elif kind == "paused" and index == pauses[-1]:
            words = paused_text(str(detail.get("reason") or ""))
            yield Text(text_id, f"{words} It is {_where(head)}.", words, index=index, is_pause=True)
        elif kind == "unpaused" and index == pauses[-1] and len(pauses) > 1 and _id(head, pauses[-2]) in known:
            yield Text(text_id, f"The pause is over. Go on with {_where(head)}.", index=index, is_pause=True)
        elif kind == "override" and detail.get("by") == "person":
            reason = one_line(str(detail.get("reason") or ""), MAX_ABOUT)
            call = f"Report it again: finished_step(session_id={head.session_id!r}, step_id={entry.get('step_id')!r})."
            yield Text(text_id, f"Your user lets {step}, pass without a review: {reason} {call}", index=index)
        elif kind == "verdict" and detail.get("by") == "person":
            if index == results[-1] and not _is_reported(history[index + 1 :], entry.get("step_id")):
                yield _decision(text_id, index, entry, head)
        elif kind in _RESULTS and index == results[-1]:
            call = f"finished_step(session_id={head.session_id!r}, step_id='?', outputs={{}})"
            text = f"The review of {step}, {_RESULTS[kind]}; {call} tells how."
            is_due = is_past(str(entry.get("at")), datetime.now(UTC) - timedelta(seconds=RESULT_SECONDS))
            yield Text(text_id, text, index=index, is_result=True, is_due=is_due)


def end_of(head: Head, history: Sequence[Entry]) -> Text:
    """Write that a session was ended before its end."""
    index = max((index for index, entry in enumerate(history) if entry["kind"] == "aborted"), default=0)
    reason = str(history[index].get("detail", {}).get("explanation") or "") if history else ""
    text = f"{_where(head)}, was ended before its end: {one_line(reason, MAX_ABOUT)} (do nothing more for it)"
    return Text(_id(head, index), text, reason[:MAX_COMPARED])


def first_open(history: Sequence[Entry]) -> int:
    """Return from which entry on an agent that goes on with a session has to hear its news: its pause, and notes."""
    reports = [index for index, entry in enumerate(history) if entry["kind"] in _REPORTS]
    pauses = [index for index, entry in enumerate(history) if entry["kind"] in _PAUSES]
    first = reports[-1] + 1 if reports else 0
    return min(first, pauses[-1]) if pauses and history[pauses[-1]]["kind"] == "paused" else first


def mail_text(message: AgentMessage) -> Text:
    """Write a message to an agent: only what its plugin vouches for stands outside of the quotation.

    One without words of others is told already by a reply that names its id.
    """
    if message.is_pause:
        return Text(message.id, message.about, is_pause=True)
    about = one_line(message.about, MAX_ABOUT) if message.about else "Message:"
    body = shorten(quoted_lines(message.text[: MAX_BODY + 1]), MAX_QUOTED) if message.text else ""
    text = "\n".join(filter(None, [about, body, one_line(message.answer, MAX_ABOUT)]))
    return Text(message.id, text, parts=() if body else (message.id,))


def _remark(text_id: str, index: int, entry: Entry, head: Head) -> Text:
    detail = entry["detail"]
    if detail.get("id"):
        return _comment(text_id, index, entry, head)
    author = "Your user says" if detail.get("by") == "person" else "Somebody, not seen to be a person, says"
    text = detail["text"].strip()
    cut = "" if len(text) <= MAX_BODY else f"\n[Cut here; `deepwork sessions history {head.session_id}` has all.]"
    body = shorten(quoted_lines(text[:MAX_BODY]), MAX_QUOTED)
    text = f"{author} about step {entry['step_id']!r} of {_where(head)}:\n{body}{cut}"
    return Text(text_id, text, body[:MAX_COMPARED], index=index)


def _comment(text_id: str, index: int, entry: Entry, head: Head) -> Text:
    """Write a comment on lines of a file; a report of the step tells it by its id."""
    detail = entry["detail"]
    place = visible(f"{detail.get('file')}:{detail.get('line')}")
    must = ", which must be met or answered" if detail.get("must") else ""
    said = f"Your user comments on {place}, step {entry['step_id']!r} of {_where(head)}{must}"
    body = shorten(quoted_lines(detail["text"][:MAX_BODY]), MAX_QUOTED)
    return Text(text_id, f"{said} (comment {detail['id']}):\n{body}", parts=(detail["id"], detail["text"]), index=index)


def _decision(text_id: str, index: int, entry: Entry, head: Head) -> Text:
    """Write what a person has decided of a step that waits for them."""
    detail, step_id = entry["detail"], entry.get("step_id")
    says = "has passed" if detail.get("passed") else "asks for changes of"
    call = f"finished_step(session_id={head.session_id!r}, step_id={step_id!r})"
    text = f"Your user {says} step {step_id!r} of {_where(head)}. Report it again, with the same outputs: {call}."
    feedback = str(detail.get("feedback") or "").strip()
    said = [shorten(quoted_lines(feedback[:MAX_BODY]), MAX_QUOTED)] if feedback else []
    return Text(text_id, "\n".join([text, *said]), feedback[:MAX_COMPARED], index=index)


def _is_reported(later: Sequence[Entry], step_id: str | None) -> bool:
    return any(entry["kind"] in _REPORTS and entry.get("step_id") == step_id for entry in later)


def _where(head: Head) -> str:
    return f"{head.workflow}, session {head.session_id}"


def _id(head: Head, index: int) -> str:
    return f"{head.session_id}.{index}"
