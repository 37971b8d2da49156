"""What is kept of an attempt: the judged copies, within bounds, and what is known of each file."""

from __future__ import annotations

import math
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from anyio import to_thread

from deepwork.errors import CorruptSession
from deepwork.gate.snapshot import Snapshot, copy_name
from deepwork.gate.work import Work
from deepwork.models.history import KeptFile
from deepwork.models.sessions import Session, SessionStatus
from deepwork.paths.contents import MAX_ATTEMPT, MAX_DAYS, MAX_FILE, Contents, Drafts
from deepwork.sessions.attempts import attempts_of, begun_with
from deepwork.sessions.manager import StateManager
from deepwork.sessions.standing import open_steps

# So many files of one attempt are listed.
MAX_FILES = 1000
PRUNED_EVERY = 3600.0
_SNIFFED = 8192
_FORMS = {".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".tsv": "csv", ".json": "json"}
# What a browser shows of these cannot run anything.
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp"}
_SECRET_NAME = re.compile(
    r"(^|/)(\.env(\..*)?|\.netrc|\.pgpass|\.npmrc|\.pypirc|id_(rsa|dsa|ecdsa|ed25519)|credentials(\.\w+)?"
    r"|.*\.(pem|key|p12|pfx|keystore|jks)|.*secrets?\.(ya?ml|json|toml|env))$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bxox[abpr]-[\w-]{10}"
    rb"|\bsk-[A-Za-z0-9_-]{20}|(?i:(password|passwd|secret|api_?key|token)\s*[=:]\s*['\"][^'\"\s]{8,}['\"])"
)


class Keeper:
    """Keeps what was reported, and drafts: one for all steps of a project.

    It keeps the contents of the steps that a person reviews, or always those of every reviewed step.
    """

    machine = socket.gethostname()

    def __init__(self, contents: Contents, drafts: Drafts, *, always: bool = False) -> None:
        self.contents = contents
        self.drafts = drafts
        self._always = always
        self._written: int | None = None  # since old contents were removed; None before anything was kept
        self._pruned_at = -math.inf

    def wants(self, work: Work) -> bool:
        """True if what is reported for a step is kept."""
        return self._always or any(reviewer.spec.waits for several in work.reviewers.values() for reviewer in several)

    def is_due(self) -> bool:
        """True if old contents are to be removed now: once an hour in which any were kept, and after so many bytes."""
        now = time.monotonic()
        if self._written is None or (now < self._pruned_at + PRUNED_EVERY and self._written < MAX_ATTEMPT):
            return False
        self._written, self._pruned_at = 0, now
        return True

    def content(self, file: KeptFile | None) -> bytes | None:
        """Return what a file held; None if it is not kept here."""
        return self.contents.read(file.digest) if file and file.kept else None

    async def prune(self, sessions: StateManager, *, older_than: float = MAX_DAYS) -> int:
        """Remove contents that are old or too many, and old drafts, but none that an open step needs; return how many.

        A session that cannot be read could need any of them, so with one nothing is removed.
        """
        store = await sessions.store()
        needed: set[str] = set()
        for summary in await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize):
            try:
                session = await store.load(summary.session_id)
            except CorruptSession:
                return 0
            needed.update(_needed(session) if session else ())

        def remove() -> int:
            contents = self.contents.prune(needed, older_than=older_than)
            return contents + self.drafts.prune(needed, older_than=older_than)

        return await to_thread.run_sync(remove)

    def keep(self, work: Work, copied: Snapshot) -> list[KeptFile]:
        """Keep the copies, and return what is known of each. It reads and writes files.

        A content that cannot be written is not kept; the review goes on without it.
        """
        return [*self._kept(work, copied)]

    def _kept(self, work: Work, copied: Snapshot) -> Iterator[KeptFile]:
        room = MAX_ATTEMPT
        inputs = {path for path, _ in work.inputs}
        for path, output in work.files[:MAX_FILES]:
            copy, digest = copied.root / copy_name(path), copied.originals[path].digest
            file = KeptFile(path=path, digest=digest, output=None if path in inputs else output)
            try:
                size = os.stat(copy).st_size
                form, is_secret = _looked_at(path, copy)
                is_kept = size <= min(MAX_FILE, room) and self.contents.keep(digest, copy)
            except OSError:
                yield file
                continue
            room -= size if is_kept else 0
            self._written = (self._written or 0) + (size if is_kept else 0)
            yield file.model_copy(update={"size": size, "form": form, "kept": is_kept, "secret": is_secret})


def _looked_at(path: str, copy: Path) -> tuple[str, bool]:
    """Return the form of a file, and whether it looks like one with secrets."""
    suffix = os.path.splitext(path)[1].lower()
    with open(copy, "rb") as file:
        head = file.read(_SNIFFED)
        is_secret = bool(_SECRET_NAME.search(path)) or bool(_SECRET_TEXT.search(head + file.read(MAX_FILE)))
    if suffix in _IMAGES:
        return "image", is_secret
    if b"\0" in head:
        return "binary", is_secret
    return _FORMS.get(suffix, "text"), is_secret


def _needed(session: Session) -> Iterator[str]:
    """Yield the digests of what was reported of open steps and of what they began with, and the names of drafts."""
    for step_id in open_steps(session):
        attempts = attempts_of(session, step_id)
        for reported in attempts:
            yield from (file.digest for file in reported.attempt.contents)
        yield from (file.digest for file in begun_with(session, step_id).values())
        for number in range(len(attempts) + 1):  # pages keep one for all attempts, under 0
            yield from (draft_name(session.session_id, step_id, number, name) for name in (None, session.principal))


def draft_name(session_id: str, step_id: str, attempt: int, principal: str | None) -> str:
    """Return what the draft of a person on an attempt is called."""
    parts = (session_id, step_id, attempt, principal)
    return f"{sha256(repr(parts).encode('utf-8', 'surrogatepass')).hexdigest()}.json"
