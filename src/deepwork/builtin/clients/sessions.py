"""Which of our sessions a session of a client has started or gone on with, kept in the user's state folder."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import user_state_dir

# A client session that was not used for so long is forgotten.
KEPT_SECONDS = 60 * 24 * 3600
MAX_SESSIONS = 50
_LOCK = "notes.lock"


@dataclass(frozen=True)
class Note:
    """What is known of one client session.

    Attributes:
        sessions: Our sessions that it has started or gone on with, the last one last.
        reminded: Of which state of each it was reminded.
        reminders: How often it was reminded since its user's last turn.
        agents: Which agent it is, by project.
    """

    sessions: tuple[str, ...] = ()
    reminded: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    reminders: int = 0


class ClientSession:
    """One session of one client, by the id that the client gives it."""

    def __init__(self, client: str, client_session: str, environment: Mapping[str, str]) -> None:
        self._folder = user_state_dir(environment) / "client-sessions"
        self._name = f"{sha256(json.dumps([client, client_session]).encode()).hexdigest()[:32]}.json"

    def note(self) -> Note:
        """Read what is known; nothing if the file cannot be read."""
        try:
            with Folder.open(self._folder, inside=self._folder) as folder:
                return _parsed(folder.read(self._name))
        except OSError:
            return Note()

    def add(self, session_ids: Iterable[str]) -> None:
        """Note that these sessions are its own, the last one last."""
        new = [*dict.fromkeys(session_ids)]
        self._change(
            lambda note: replace(
                note, sessions=(*(known for known in note.sessions if known not in new), *new)[-MAX_SESSIONS:]
            )
        )

    def remind(self, states: Mapping[str, str]) -> None:
        """Note the states that the client session is reminded of now."""
        self._change(lambda note: replace(note, reminded={**note.reminded, **states}, reminders=note.reminders + 1))

    def begin_turn(self) -> None:
        """Note that its user's next turn has begun."""
        if self.note().reminders:
            self._change(lambda note: replace(note, reminders=0))

    def be(self, root: str, agent_id: str) -> None:
        """Note which agent it is in a project."""
        self._change(lambda note: replace(note, agents={**note.agents, root: agent_id}))

    def _change(self, change: Any) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (
            Folder.open(self._folder, inside=self._folder) as folder,
            folder.locked(_LOCK, subject="the notes of client sessions", seconds=1),
        ):
            is_new = folder.read(self._name) is None
            note = change(_parsed(folder.read(self._name)))
            folder.replace(self._name, json.dumps(asdict(note)).encode(), synced=False)
            if is_new:
                _remove_old(folder)


def _parsed(content: bytes | None) -> Note:
    try:
        data = json.loads(content or b"{}")
        sessions = tuple(str(session) for session in data.get("sessions", ()))
        agents, reminders = _texts(data.get("agents", {})), int(data.get("reminders", 0))
        return Note(sessions, _texts(data.get("reminded", {})), agents, reminders)
    except (ValueError, TypeError, AttributeError):
        return Note()


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in data.items()}


def _remove_old(folder: Folder) -> None:
    for name in folder.names():
        with suppress(OSError):
            if name.endswith(".json") and time.time() - folder.status(name).st_mtime > KEPT_SECONDS:
                folder.remove(name)
