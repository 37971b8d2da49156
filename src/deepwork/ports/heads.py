"""What sessions say of themselves, read without opening their store: hooks, status lines and lists run often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deepwork.models.standing import Head

ACTIVE = "active"


class SessionHeads(Protocol):
    """Reads where the sessions of a project stand; unreadable ones are left out."""

    def named(self, session_id: str, status: str = ACTIVE) -> Head | None:
        """Return one session; None if it has another status."""

    def history(self, session_id: str, status: str = ACTIVE) -> Sequence[Mapping[str, Any]]:
        """Return what has happened in a session of this status, as it is stored; nothing if it cannot be read."""

    def open(self) -> list[Head]:
        """Return all open sessions, the last changed first."""


class StoredHeads(SessionHeads, Protocol):
    """Reads them from what one store has written. It imports no models unless a session says too little."""

    def document(self, session_id: str) -> Mapping[str, Any] | None:
        """Return the JSON of an open session; None if that does not say everything."""

    def newest(self, status: str | None, limit: int) -> list[Head] | None:
        """Return the sessions that were changed last; None if one of them is not as this release writes it.

        Raises:
            OSError, DeepWorkError: They cannot be listed.
        """
