"""Pieces of work that people review: what was reported, attempt by attempt, and what people say of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from deepwork.engine.item_pages import item_of
from deepwork.engine.keeping import Keeper, draft_name
from deepwork.errors import ArgumentError, StateError, StorageError, UnknownSession
from deepwork.models.history import Conclusion, KeptFile, Verdict
from deepwork.models.sessions import Session
from deepwork.models.standing import PERSON, WaitKind
from deepwork.paths.contents import MAX_DAYS, MAX_DRAFT
from deepwork.ports.inbox import Answer, Answerer
from deepwork.sessions.attempts import Reported, attempts_of, begun_with, kept_files
from deepwork.sessions.comments import Comment, ContentOf, placed_comments
from deepwork.sessions.decisions import PersonDecision, decided, resolved
from deepwork.sessions.manager import StateManager
from deepwork.sessions.standing import waiting_steps
from deepwork.text import is_overdue

ACTIONS = ("pass", "changes")
# A file: the number of its attempt, 0 for what the step began with, and its path.
FileKey = tuple[int, str]


@dataclass(frozen=True)
class Piece:
    """A piece of work as a person sees it; `docs/reference/person-reviews.md` says what each field means."""

    data: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return what JSON has of it everywhere."""
        return dict(self.data)


class Pieces:
    """The pieces of work of a project; one is overdue when it has waited so many seconds, if any are given."""

    def __init__(self, sessions: StateManager, keeper: Keeper, after: float | None = None) -> None:
        self._sessions = sessions
        self._keeper = keeper
        self.after = after

    async def piece(self, session_id: str, step_id: str) -> Piece:
        """Return all that is known of a step's work.

        Raises:
            StateError: There is no such session, or no such step in it.
        """
        session = await self._session(session_id, step_id)
        return await to_thread.run_sync(self._piece, session, step_id)

    async def contents(self, session_id: str, step_id: str, keys: Iterable[FileKey]) -> dict[FileKey, bytes]:
        """Return what files held, as far as that is kept here.

        Raises:
            StateError: There is no such session, or no such step in it.
        """
        session = await self._session(session_id, step_id)
        return await to_thread.run_sync(self._contents, session, step_id, keys)

    async def decide(self, session_id: str, step_id: str, answer: Answer, by: Answerer) -> Session:
        """Write down what a person has decided of the attempt that waits: `pass` or `changes`.

        Raises:
            PersonNeeded: No person does it.
            ItemChanged: It was decided or reported again meanwhile; nothing was changed.
            ArgumentError: The action or a comment is not valid, or nothing says what has to change.
        """
        by.check_person("review what an agent has made")
        if answer.action not in ACTIONS:
            actions = ", ".join(ACTIONS)
            raise ArgumentError(f"{answer.action!r} is no decision; nothing was changed", hint=f"Choose: {actions}.")
        decision = PersonDecision.of(answer, by)
        session = await self._session(session_id, step_id)
        if by.principal not in (None, session.principal):
            raise UnknownSession(f"Session {session_id!r} not found")

        def decide(current: Session) -> Session:
            return decided(current, step_id, decision, self._content(current, step_id), now=self._sessions.now())

        return await self._sessions.update(session, decide)

    async def resolve(self, session_id: str, step_id: str, comment_id: str, by: Answerer) -> Session:
        """Settle a comment; a settled one stays as it is.

        Raises:
            PersonNeeded: No person does it.
            StateError: There is no such comment.
        """
        by.check_person("settle a comment")

        def resolve(current: Session) -> Session:
            comments = {comment.id: comment for comment in placed_comments(current, step_id, lambda *_: None)}
            if comment_id not in comments:
                raise StateError(f"Step {step_id!r} has no comment {comment_id!r}; nothing was changed")
            if comments[comment_id].is_resolved:
                return current
            return resolved(current, step_id, comment_id, by.recorded(), now=self._sessions.now())

        return await self._sessions.update(await self._session(session_id, step_id), resolve)

    async def prune(self, *, older_than: float = MAX_DAYS) -> int:
        """Remove contents and drafts that no open step needs, the oldest first, and return how many were removed."""
        return await self._keeper.prune(self._sessions, older_than=older_than)

    # Drafts

    async def load_draft(self, session_id: str, step_id: str, attempt: int, by: Answerer) -> Any:
        """Return what a person has begun to write on an attempt; None if they have not."""
        name = draft_name(session_id, step_id, attempt, by.principal)
        content = await to_thread.run_sync(self._keeper.drafts.read, name)
        with suppress(ValueError):
            return None if content is None else json.loads(content)
        return None

    async def save_draft(self, session_id: str, step_id: str, attempt: int, by: Answerer, draft: Any) -> None:
        """Keep what a person has begun to write, for them alone; None removes it.

        Raises:
            ArgumentError: It is too large.
            StorageError: It could not be kept.
        """
        content = None if draft is None else json.dumps(draft).encode()
        if content is not None and len(content) > MAX_DRAFT:
            raise ArgumentError(f"The draft has {len(content):,} bytes; the limit is {MAX_DRAFT:,}")
        name = draft_name(session_id, step_id, attempt, by.principal)
        try:
            await to_thread.run_sync(self._keeper.drafts.write, name, content)
        except OSError as error:
            raise StorageError(f"The draft could not be kept: {error.strerror}") from error

    # What a piece says

    async def _session(self, session_id: str, step_id: str) -> Session:
        session = await self._sessions.reload(session_id)
        if step_id not in session.step_progress or session.definition is None:
            raise StateError(f"Session {session_id!r} has not begun a step {step_id!r}")
        return session

    def _contents(self, session: Session, step_id: str, keys: Iterable[FileKey]) -> dict[FileKey, bytes]:
        content = self._content(session, step_id)
        found = ((key, content(*key)) for key in keys)
        return {key: held for key, held in found if held is not None}

    def _content(self, session: Session, step_id: str) -> ContentOf:
        kept_file = kept_files(session, step_id)
        return lambda attempt, path: self._keeper.content(kept_file(attempt, path))

    def _piece(self, session: Session, step_id: str) -> Piece:
        step = next((step for step in waiting_steps(session) if step.step_id == step_id), None)
        attempts = attempts_of(session, step_id)
        reviews = session.pinned.steps[step_id].reviews
        criteria = {name: question for review in reviews for name, question in review.quality_criteria.items()}
        first_files = begun_with(session, step_id)
        waits = step if step and step.kind is WaitKind.PERSON else None
        return Piece(
            {
                "session": session.session_id,
                "step_id": step_id,
                "workflow": session.workflow,
                "job": session.job_name,
                "goal": session.goal,
                "item": item_of(session, step_id) if step else None,
                "state": step.state if step else None,
                "waiting": waits
                and {
                    "since": waits.since,
                    "attempt": attempts[-1].number,
                    "overdue": is_overdue(waits.since, self.after),
                },
                "attempts": [
                    self._attempt(reported, criteria, is_awaited=waits is not None and reported is attempts[-1])
                    for reported in attempts
                ],
                "begun": {"files": [self._file(file, None) for file in first_files.values()]} if first_files else None,
                "inputs": [self._file(file, attempts[-1].attempt.machine) for file in attempts[-1].inputs]
                if attempts
                else [],
                "comments": [
                    _comment(comment) for comment in placed_comments(session, step_id, self._content(session, step_id))
                ],
            }
        )

    def _attempt(self, reported: Reported, criteria: Mapping[str, str], *, is_awaited: bool) -> dict[str, Any]:
        # A report that was replaced, skipped or ended meanwhile waits for no review.
        is_over = reported.result == "waiting" and not is_awaited
        return {
            "number": reported.number,
            "at": reported.at,
            "given_back": reported.given_back,
            "result": "not_judged" if is_over else reported.result,
            "files": [self._file(file, reported.attempt.machine) for file in reported.outputs],
            "criteria": dict(criteria),
            "reviewers": [
                _reviewer(conclusion) for conclusion in (*reported.verdicts, *reported.decided, *reported.failures)
            ],
        }

    def _file(self, file: KeptFile, machine: str | None) -> dict[str, Any]:
        is_here = file.kept and self._keeper.contents.holds(file.digest)
        elsewhere = machine if file.kept and not is_here and machine != self._keeper.machine else None
        return {
            "path": file.path,
            "output": file.output,
            "digest": file.digest or None,
            "size": file.size,
            "kind": file.form,
            "kept": is_here,
            "where": elsewhere,
            "secret": file.secret,
        }


def _comment(comment: Comment) -> dict[str, Any]:
    note = comment.note
    place = comment.place
    return {
        "id": comment.id,
        "attempt": comment.attempt,
        "file": comment.file,
        "line": comment.written.line,
        "end_line": comment.written.end_line,
        "quoted": note.quoted or "",
        "text": note.text,
        "must": note.must,
        "suggestion": note.suggestion,
        "by": _name(note),
        "at": comment.at,
        "state": comment.state.value,
        "place": place and {"attempt": comment.place_attempt, "line": place.line, "end_line": place.end_line},
        "answers": [{"text": answer.text, "at": answer.at, "attempt": answer.attempt} for answer in comment.answers],
    }


def _reviewer(conclusion: Conclusion) -> dict[str, Any]:
    verdict = conclusion if isinstance(conclusion, Verdict) else None
    findings = verdict.findings if verdict else ()
    return {
        "runner": conclusion.runner,
        "run_each": conclusion.run_each,
        "file": conclusion.file,
        "passed": verdict.passed if verdict else None,
        "feedback": verdict.feedback if verdict else getattr(conclusion, "error", ""),
        "by": _name(verdict) if verdict and verdict.by else None,
        "findings": [finding.model_dump(mode="json", exclude_none=True) for finding in findings],
    }


def _name(detail: Any) -> str:
    """Return who has written or decided something, as far as it is known."""
    names = (getattr(detail, name, None) for name in ("user", "principal", "client", "terminal"))
    return next((str(name) for name in names if name), PERSON)
