"""Sessions are copied from one state store to another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from deepwork.api import Session, StateStore
from deepwork.errors import ConfigError, CorruptSession, StaleSession
from deepwork.project.stores import open_store


class CopyReport(NamedTuple):
    """What became of the sessions, by their ids."""

    copied: list[str]
    present: list[str]
    different: list[str]
    failed: list[str]
    archived: list[str]
    damaged: list[str]

    @property
    def exit_code(self) -> int:
        """0 if every session that is listed has an equal copy."""
        return int(bool(self.different or self.failed))

    def lines(self) -> Iterator[str]:
        """Return it in words."""
        yield f"copied     {len(self.copied)}"
        yield f"present    {len(self.present)} (an equal copy was there)"
        for title, session_ids, meaning in (
            ("different", self.different, "the target has another session of this id; nothing was overwritten"),
            ("failed", self.failed, "it could not be read, or its copy is not equal"),
            ("archived", self.archived, "not copied"),
            ("damaged", self.damaged, "not copied"),
        ):
            for session_id in session_ids:
                yield f"{title:10} {session_id}: {meaning}"


async def copy_sessions(root: str, source: str, target: str) -> CopyReport:
    """Copy what `find` shows, the oldest first, so that the listing of the copies has the same order.

    Raises:
        ConfigError: Both stores are the same one.
        StorageError: A store did not answer; what was copied before stays.
    """
    if source == target:
        raise ConfigError(f"--from and --to are both {source!r}", hint="Give two stores: --from json --to sql.")
    report = CopyReport([], [], [], [], [], [])
    async with open_store(root, source) as source_store, open_store(root, target) as target_store:
        for summary in reversed(await source_store.find(limit=sys.maxsize)):
            outcome = await _copy(source_store, target_store, summary.session_id)
            getattr(report, outcome).append(summary.session_id)
        report.archived.extend(summary.session_id for summary in await source_store.archived())
        report.damaged.extend(await source_store.damaged())
    return report


async def _copy(source: StateStore, target: StateStore, session_id: str) -> str:
    """Copy one session, and name the list of the report to which it belongs."""
    try:
        session = await source.load(session_id)
    except CorruptSession:
        return "failed"
    if session is None:  # archived meanwhile
        return "failed"
    stored = await target.load(session_id)
    if stored is not None:
        return "present" if _plain(stored) == _plain(session) else "different"
    try:
        await target.save(session, expected=None)
    except StaleSession:  # archived in the target, or made there meanwhile
        return "different"
    stored = await target.load(session_id)
    return "copied" if stored is not None and _plain(stored) == _plain(session) else "failed"


def _plain(session: Session) -> Session:
    """A session without its revision, which is the store's."""
    return session.model_copy(update={"revision": 0})
