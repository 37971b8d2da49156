"""Reports to steps that people review: what the history answers without asking anybody, and their comments."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from anyio import to_thread

from deepwork.engine.item_pages import ItemPages
from deepwork.engine.keeping import Keeper
from deepwork.errors import StateError, StorageError
from deepwork.gate.decision import Decision, DecisionKind
from deepwork.gate.snapshot import Snapshot, copy_name
from deepwork.gate.work import Work, evaluations
from deepwork.models.history import EventKind
from deepwork.models.replies import PersonComment, WaitsFor
from deepwork.models.sessions import Session
from deepwork.paths.contents import MAX_FILE
from deepwork.paths.folder import Folder
from deepwork.paths.served_pages import ServedPages
from deepwork.sessions.attempts import Reported, attempts_of, kept_files, times_asked
from deepwork.sessions.comments import Comment, CommentState, ContentOf, Placing, answers_in, comments_of
from deepwork.sessions.decisions import answered
from deepwork.sessions.lines import replaced
from deepwork.sessions.manager import StateManager
from deepwork.sessions.transitions import told_comments

_HOW = "Answer comments in notes, one line `ID: answer` each."
# So many comments are in one reply; an agent pays for every word.
MAX_TOLD = 50
_AGAIN = "Then call finished_step again."


@dataclass(frozen=True)
class Submitted:
    """What a report means to the people who review the step.

    Attributes:
        step_id: The step.
        number: The attempt that it is.
        work: The digest of what is reported.
        comments: All comments, each with its place in what is reported.
        answers: What the agent answers in this report, and has not answered before.
        suggestions: The diffs of the comments that are told with the answer.
        decision: What is answered without a review; None if there has to be one.
    """

    step_id: str
    number: int
    work: str
    comments: Sequence[Comment]
    answers: Mapping[str, str]
    suggestions: Mapping[str, str | None]
    decision: Decision | None = None


class PersonReviews:
    """Answers reports to steps that people review; without a keeper no contents are kept, without pages none named."""

    def __init__(self, sessions: StateManager, keeper: Keeper | None = None, served: ServedPages | None = None) -> None:
        self.pages = ItemPages(served)
        self._sessions = sessions
        self._keeper = keeper

    async def kept(self, work: Work, copied: Snapshot) -> Mapping[str, Any]:
        """Keep what was reported if it is to be kept, and return what the history says of that."""
        keeper = self._keeper
        if keeper is None or not keeper.wants(work):
            return {}
        contents = await to_thread.run_sync(keeper.keep, work, copied)
        return {"work": work.key(copied.originals)[2], "machine": keeper.machine, "contents": contents}

    async def prune(self) -> None:
        """Remove old contents now and then; that none can be removed must not hold up an agent."""
        if self._keeper and self._keeper.is_due():
            with suppress(StateError):
                await self._keeper.prune(self._sessions)

    async def read(self, session: Session, work: Work, copied: Snapshot) -> Submitted | None:
        """Read what a report means; None for a step about which nobody was asked and nothing was said."""
        step_id = work.step.id
        if not times_asked(session, step_id):
            return None
        return await to_thread.run_sync(self._read, session, work, copied)

    async def told(self, session: Session, submitted: Submitted, decision: Decision) -> tuple[Session, Decision]:
        """Note what the agent has answered and is told, and return the decision with that."""
        step_id = submitted.step_id
        comments = comments_of(session, step_id)
        known = {comment.id: comment for comment in submitted.comments}
        new = [known.get(comment.id, comment) for comment in comments[_told_before(session, step_id, submitted.work) :]]

        def note(current: Session) -> tuple[Session, None]:
            answers = {
                comment.id: submitted.answers[comment.id]
                for comment in comments_of(current, step_id)
                if comment.id in submitted.answers and _last(comment) != submitted.answers[comment.id]
            }
            if answers:
                current = answered(current, step_id, answers, submitted.number, now=self._sessions.now())
            return told_comments(current, step_id, submitted.work, len(comments)), None

        session, _ = await self._sessions.update_upgraded(session, note)
        told = [_told(comment, submitted.suggestions.get(comment.id)) for comment in new]
        decision = replace(decision, notices=(*decision.notices, *_musts(submitted.comments, told)))
        if len(told) <= MAX_TOLD:
            return session, replace(decision, comments=tuple(told))
        where = await to_thread.run_sync(self._written, session.session_id, told)
        notice = f"{len(told):,} comments, the first {MAX_TOLD} here; read all of them in {where}."
        return session, replace(decision, comments=tuple(told[:MAX_TOLD]), notices=(*decision.notices, notice))

    def _read(self, session: Session, work: Work, copied: Snapshot) -> Submitted:
        attempts = attempts_of(session, work.step.id)
        last, digest = attempts[-1], work.key(copied.originals)[2]
        is_same = last.asked is not None and last.asked.work == digest and _is_asked(session, last, work, copied)
        number = last.number if is_same else last.number + 1
        placing = Placing(self._content(session, work.step.id, number, copied))
        numbers = [*range(1, number + 1)]
        comments = [placing.placed(comment, numbers) for comment in comments_of(session, work.step.id)]
        open_ids = [comment.id for comment in comments if not comment.is_resolved]
        answers = {
            comment_id: text
            for comment_id, text in answers_in(work.notes, open_ids).items()
            if _last(next(comment for comment in comments if comment.id == comment_id)) != text
        }
        new = comments[_told_before(session, work.step.id, digest) :]
        suggestions = {comment.id: _suggestion(comment, number, placing.content) for comment in new}
        submitted = Submitted(work.step.id, number, digest, comments, answers, suggestions)
        if is_same and last.asked and not last.decided:
            return replace(submitted, decision=waiting(last))
        unmet = [comment.id for comment in comments if comment.is_unmet and comment.id not in answers]
        if is_same and all(verdict.passed for verdict in last.decided):
            return submitted
        if unmet or (is_same and not answers):
            feedback = [] if not is_same else [verdict.feedback for verdict in last.decided]
            return replace(submitted, decision=_asked_for(feedback, unmet, is_same=is_same))
        return submitted

    def _written(self, session_id: str, told: Sequence[PersonComment]) -> str:
        """Write more comments than a reply has room for where the agent can read them.

        Raises:
            StorageError: They could not be written.
        """
        workspace = self._sessions.workspace
        path = workspace.state_dir / f"comments_{session_id}.json"
        content = json.dumps([comment.model_dump(mode="json") for comment in told], indent=1, ensure_ascii=False)
        try:
            workspace.prepare_state_dir()
            with Folder.open(path.parent, inside=workspace.root) as folder:
                folder.replace(path.name, content.encode())
        except OSError as error:
            raise StorageError(f"The comments could not be written: {error.strerror}", hint="Call again.") from error
        return workspace.shown(path)

    def _content(self, session: Session, step_id: str, number: int, copied: Snapshot) -> ContentOf:
        kept_file = kept_files(session, step_id)

        def content(attempt: int, path: str) -> bytes | None:
            if attempt != number:
                return self._keeper.content(kept_file(attempt, path)) if self._keeper else None
            if path not in copied.originals:
                return None
            file = copied.root / copy_name(path)
            return file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_FILE else None

        return content


def waiting(reported: Reported) -> Decision:
    """Return the answer to a report that waits for a person."""
    asked = reported.asked
    return Decision(
        DecisionKind.WAITING,
        asked.text if asked else "",
        waits_for=WaitsFor(where=asked.reference, since=reported.asked_at) if asked else None,
    )


def _is_asked(session: Session, last: Reported, work: Work, copied: Snapshot) -> bool:
    """True if a person was asked about exactly this since the step was begun, and the same reviewers are chosen."""
    if last.asked is None or any(
        entry.kind == EventKind.REOPENED and entry.at >= last.asked_at for entry in session.history
    ):
        return False
    subjects = {one.subject for portion in evaluations(work, copied.originals) for one in portion}
    return all(review.subject in subjects for review in last.asked.reviews)


def _asked_for(feedback: Sequence[str], unmet: Sequence[str], *, is_same: bool) -> Decision:
    texts = [*dict.fromkeys(feedback)]
    if unmet:
        texts.append(f"Neither changed nor answered, and a must: {', '.join(unmet)}. Nobody was asked again.")
    what = "Change the files, or answer. " if is_same else ""
    texts.append(f"{what}{_HOW} {_AGAIN} This counts as no attempt.")
    return Decision(DecisionKind.ASKED_FOR, "\n".join(filter(None, texts)))


def _musts(comments: Sequence[Comment], told: Sequence[PersonComment]) -> Iterator[str]:
    """Yield which comments that must be met still are as they were, without the comments told now."""
    known = {comment.id for comment in told}
    left = [comment.id for comment in comments if comment.note.must and comment.state is CommentState.OPEN]
    left = [comment_id for comment_id in left if comment_id not in known]
    if left:
        more = f" and {len(left) - MAX_TOLD} more" if len(left) > MAX_TOLD else ""
        yield f"Open, and a must: {', '.join(left[:MAX_TOLD])}{more}."


def _told_before(session: Session, step_id: str, work: str) -> int:
    """Return how many comments the agent was told by reports of other files."""
    progress = session.step_progress[step_id]
    return progress.told_before if progress.told_work == work else progress.told_comments


def _last(comment: Comment) -> str | None:
    return comment.answers[-1].text if comment.answers else None


def _told(comment: Comment, suggestion: str | None) -> PersonComment:
    """Return a comment as the agent reads it: at its place in what was reported now, if it is still there."""
    is_there = comment.state is CommentState.OPEN and comment.place is not None
    place = comment.place if is_there and comment.place else comment.written
    return PersonComment(
        id=comment.id,
        file=comment.file,
        line=place.line,
        quoted=comment.note.quoted or "",
        text=comment.note.text,
        must=comment.note.must,
        suggestion=suggestion,
    )


def _suggestion(comment: Comment, number: int, content: ContentOf) -> str | None:
    """Return the diff of a suggestion that applies to what is reported now, if any does."""
    text, place = comment.note.suggestion, comment.place
    if text is None or place is None or comment.state is not CommentState.OPEN or os.path.isabs(comment.file):
        return None
    current = content(number, comment.file)
    return None if current is None else replaced(comment.file, current, place, text)
