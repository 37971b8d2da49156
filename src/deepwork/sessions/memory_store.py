"""Sessions in memory: the smallest store, for rehearsals, experiments and readers of this code."""

from __future__ import annotations

from deepwork.errors import StaleSession
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.ports.state_store import StateStore


class MemoryStore(StateStore):
    """Forgets everything when the server ends."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    async def load(self, session_id: str) -> Session | None:
        """Return the session as it was saved."""
        return self._sessions.get(session_id)

    async def save(self, session: Session, *, expected: int | None) -> int:
        """Store the session, unless another caller has changed it."""
        current = self._sessions.get(session.session_id)
        if (current.revision if current else None) != expected:
            raise StaleSession(f"Session {session.session_id!r} was changed meanwhile")
        revision = (expected or 0) + 1
        self._sessions[session.session_id] = session.model_copy(update={"revision": revision})
        return revision

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List the sessions that fit, the last changed first."""
        summaries = [
            summary
            for summary in (session.summary() for session in self._sessions.values())
            if (status is None or summary.status == status) and (before is None or summary.updated_at < before)
        ]
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]
