"""A planted bug: the stack is kept in memory alone, so a session ends with its server."""

from __future__ import annotations

from typing import Any

from deepwork.errors import UnknownSession
from deepwork.sessions.manager import StateManager


async def _target(self: StateManager, call: Any, session_id: str | None) -> Any:
    if session_id and session_id not in self.connection(call).stack:
        raise UnknownSession(f"Session {session_id!r} not found")
    return await _real_target(self, call, session_id)


_real_target = StateManager.target
StateManager.target = _target  # type: ignore[method-assign]
