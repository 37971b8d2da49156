"""Pieces of work that people review: what was reported of a step, attempt by attempt, and what they write about it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import anyio
from anyio import to_thread
from starlette.requests import Request

from deepwork.api import Answerer, Session, read_regular
from deepwork.errors import ArgumentError, PathRefused
from deepwork.sessions.standing import step_state
from deepwork_dashboard.answers import Conflict, Mapped, NotThere, iso_text, json_body
from deepwork_dashboard.contents import FileOfAttempt, shown
from deepwork_dashboard.dashboard import Dashboard, principal_of
from deepwork_dashboard.entries import judged_digest
from deepwork_dashboard.inbox import InboxPages, shown_item

# Files of the project are read instead of kept ones up to this size.
MAX_READ = 8 * 1024**2


class Pieces:
    """The endpoints below `api/sessions/ID/steps/STEP`."""

    def __init__(self, dashboard: Dashboard, inbox: InboxPages) -> None:
        self._dashboard = dashboard
        self._inbox = inbox
        self._saving = anyio.Lock()

    async def one(self, request: Request) -> Mapped:
        """Show what was reported of a step, and what was said of it."""
        session, step_id = await self._step(request)
        piece = await self._read(session, step_id)
        declared = session.definition.steps.get(step_id) if session.definition else None
        waiting = await self._inbox.contents(principal_of(request))
        item = next((item for item in waiting.items if item.id == piece["item"]), None)
        return {
            **{name: value for name, value in piece.items() if name != "step_id"},
            "step": step_id,
            "name": declared.name if declared else step_id,
            "state": step_state(session, step_id).value,
            "item": shown_item(item) if item else None,
            "waiting": _timed(piece["waiting"], "since"),
            "attempts": [_timed(attempt, "at") for attempt in piece["attempts"]],
            "comments": [_comment(comment) for comment in piece["comments"]],
            "draft": await self._draft(session, step_id, request.state.answerer),
        }

    async def files(self, request: Request) -> Mapped:
        """Show the files of an attempt as they were judged, and what differs from another attempt."""
        session, step_id = await self._step(request)
        return await self._files(session, step_id, request.query_params)

    async def preview(self, session: Session, step_id: str, path: str, query: Mapping[str, str]) -> Mapped:
        """Show one file of an attempt, or what it builds on, also if it looks as if it held secrets."""
        files = await self._files(session, step_id, query, path=path)
        if not files["files"]:
            raise NotThere(f"this attempt has no file {path[:200]!r}")
        [file] = files["files"]
        return dict(file)

    async def save_draft(self, request: Request) -> Mapped:
        """Keep what a person writes, until they send it; of several with one login what is written first."""
        session, step_id = await self._step(request)
        by = request.state.answerer
        by.check_person("write comments")
        body = await json_body(request)
        draft, writers = body.get("draft"), body.get("writers")
        if not isinstance(draft, dict | None) or not isinstance(writers, list | None):
            raise ArgumentError("draft is an object, or null, and writers are a list")
        async with self._saving:
            stored = await self._draft(session, step_id, by)
            if stored and writers is not None and stored.get("writer") not in writers:
                raise Conflict("There is another draft of this login; it stays, and yours is not saved")
            await self._dashboard.pieces.save_draft(session.session_id, step_id, 0, by, draft)
        return {"done": "Saved"}

    async def resolve(self, request: Request) -> Mapped:
        """Settle a comment, in the name of who has logged in."""
        session, step_id = await self._step(request)
        comment = (await json_body(request)).get("comment")
        if not isinstance(comment, str):
            raise ArgumentError("comment is the id of a comment")
        await self._dashboard.pieces.resolve(session.session_id, step_id, comment, request.state.answerer)
        return {"done": "The comment is settled"}

    async def _step(self, request: Request) -> tuple[Session, str]:
        session = await self._dashboard.session(principal_of(request), request.path_params["session"])
        step_id = request.path_params["step"]
        if step_id not in session.step_progress or session.definition is None:
            raise NotThere(f"this session has not begun a step {step_id[:100]!r}")
        return session, step_id

    async def _read(self, session: Session, step_id: str) -> Mapped:
        return (await self._dashboard.pieces.piece(session.session_id, step_id)).as_json()

    async def _draft(self, session: Session, step_id: str, by: Answerer) -> Mapped | None:
        """Return what a person has not sent yet. The page says in it to which attempt it belongs."""
        if not by.is_person:
            return None
        draft = await self._dashboard.pieces.load_draft(session.session_id, step_id, 0, by)
        return draft if isinstance(draft, dict) else None

    # The contents

    async def _files(
        self, session: Session, step_id: str, query: Mapping[str, str], *, path: str | None = None
    ) -> Mapped:
        piece = await self._read(session, step_id)
        attempt = _chosen(piece, query.get("attempt"))
        against, before = _against(piece, attempt["number"], query.get("against"))
        by_path = _by_path(attempt["files"])
        if path is not None:
            by_path = _only(path, {**_by_path(piece["inputs"]), **by_path})
            before = before and _only(path, before)
        newest = piece["attempts"][-1]["number"]
        this, other = attempt["number"], 0 if against in ("begun", "none") else int(against)
        pairs = [(by_path.get(name), (before or {}).get(name)) for name in dict.fromkeys([*by_path, *(before or ())])]
        known = [_known(new, old, is_open=query.get("open") == "true") for new, old in pairs]
        wanted = [
            (number, file)
            for facts, (new, old) in zip(known, pairs, strict=True)
            for number, file in ((this, new), (other, None if facts["same"] else old))
            if file and not facts["closed"]
        ]
        held = await self._contents(session, step_id, wanted, newest)
        files = [
            FileOfAttempt(
                facts,
                content=held.get((this, new["path"])) if new else None,
                before=held.get((this if facts["same"] else other, old["path"])) if old else None,
                was_there=None if before is None else old is not None,
                is_there=new is not None,
            )
            for facts, (new, old) in zip(known, pairs, strict=True)
        ]
        return {"attempt": this, "against": against, "files": await to_thread.run_sync(shown, files)}

    async def _contents(
        self, session: Session, step_id: str, files: list[tuple[int, Mapped]], newest: int
    ) -> dict[tuple[int, str], bytes]:
        """Return what files held; what is not kept is read from the project if it is still what was judged."""
        keys = [(number, file["path"]) for number, file in files if file["kept"]]
        held = await self._dashboard.pieces.contents(session.session_id, step_id, keys)
        for number, file in files:
            path, digest = file["path"], file["digest"]
            if not digest and number == newest:
                digest = judged_digest(session, step_id, path)
            if digest and not file["kept"]:
                content = await to_thread.run_sync(self._unchanged, path, digest)
                held |= {} if content is None else {(number, path): content}
        return held

    def _unchanged(self, path: str, digest: str) -> bytes | None:
        try:
            content = read_regular(path, self._dashboard.context.workspace.output_roots, limit=MAX_READ)
        except (PathRefused, OSError):
            return None
        return content if f"sha256:{hashlib.sha256(content).hexdigest()}" == digest else None


def _chosen(piece: Mapped, text: str | None) -> Mapped:
    for attempt in reversed(piece["attempts"]):
        if text in (None, "", str(attempt["number"])):
            return dict(attempt)
    raise NotThere(f"there is no attempt {(text or '1')[:20]!r} at this step")


def _against(piece: Mapped, number: int, text: str | None) -> tuple[str, dict[str, Mapped] | None]:
    """Return the attempt to compare with: the one before, unless something else is asked for."""
    earlier = {str(attempt["number"]): attempt["files"] for attempt in piece["attempts"] if attempt["number"] < number}
    possible = {**earlier, **({"begun": piece["begun"]["files"]} if piece["begun"] else {}), "none": None}
    chosen = text or (next(reversed(earlier)) if earlier else next(iter(possible)))
    if chosen not in possible:
        raise ArgumentError(f"against is {chosen[:20]!r}; it is one of: {', '.join(possible)}")
    files = possible[chosen]
    return chosen, None if files is None else _by_path(files)


def _by_path(files: list[Mapped]) -> dict[str, Mapped]:
    return {file["path"]: file for file in files}


def _only(path: str, files: dict[str, Mapped]) -> dict[str, Mapped]:
    return {path: files[path]} if path in files else {}


def _known(new: Mapped | None, old: Mapped | None, *, is_open: bool) -> Mapped:
    """Return what is known of a file before it is read; one that looks as if it held secrets is closed."""
    file = new or old or {}
    is_secret = any(version["secret"] for version in (new, old) if version)  # what differs shows both
    is_same = bool(new and old and new["digest"] and new["digest"] == old["digest"])
    names = ("path", "output", "size", "kind", "where")
    note = "elsewhere" if file["where"] else None if file["kept"] else "large" if file["size"] > MAX_READ else "unkept"
    return {
        **{name: file[name] for name in names},
        "same": is_same,
        "closed": is_secret and not is_open,
        "note": note,
    }


def _timed(value: Mapped | None, name: str) -> Mapped | None:
    return value and {**value, name: iso_text(value[name])}


def _comment(comment: Mapped) -> Mapped:
    answers = [_timed(answer, "at") for answer in comment["answers"]]
    return {**comment, "at": iso_text(comment["at"]), "answers": answers}
