"""What is known of a session of a client, and of the agents in it, in the user's state folder.

A listener is the agent of a client session, or one of its sub-agents, by the ids that the client gives them.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import user_state_dir
from deepwork.ports.call import LOCAL

# A client session that was not used for so long is forgotten.
KEPT_SECONDS = 60 * 24 * 3600
MAX_SESSIONS = 50
# So many ids of delivered texts are kept: a call that runs beside another may still have one of them in hand.
MAX_TOLD = 300
MAX_LISTENERS = 200
# In a client session no more than this is handed over in so many seconds.
QUOTA_SECONDS = 60.0
QUOTA_TEXTS = 20
QUOTA_CHARACTERS = 8000
_LOCK = "notes.lock"


@dataclass(frozen=True)
class Listener:
    """What is known of one agent in a client session.

    Attributes:
        sessions: Our sessions that it has started or gone on with, the last one last.
        heard: Of each, how many entries of its history need not be looked at any more.
        reminded: Of which state of each it was reminded.
        reminders: How often it was reminded since its user's last turn.
        agents: Which agent it is, by project.
        handed: The texts that were handed over and not confirmed, each with the server that has done it.
        told: The last texts that were delivered.
        queue: Texts that nobody else keeps for it, by their ids.
    """

    sessions: tuple[str, ...] = ()
    heard: Mapping[str, int] = field(default_factory=dict)
    reminded: Mapping[str, str] = field(default_factory=dict)
    reminders: int = 0
    agents: Mapping[str, str] = field(default_factory=dict)
    handed: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    queue: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_joined(self) -> bool:
        """Whether any call of it has named a session or an agent of ours."""
        return bool(self.sessions or self.agents)

    def with_sessions(self, session_ids: Iterable[str]) -> Listener:
        """Note that these sessions are its own, the last one last."""
        new = [*dict.fromkeys(session_ids)]
        sessions = (*(known for known in self.sessions if known not in new), *new)[-MAX_SESSIONS:]
        return replace(self, sessions=sessions)

    def with_queued(self, text_id: str, text: str) -> Listener:
        """Keep a text for it until it is delivered."""
        return replace(self, queue={**self.queue, text_id: text})

    def with_told(self, text_ids: Iterable[str]) -> Listener:
        """Note that these texts were delivered."""
        ids = [*text_ids]
        return replace(
            self,
            handed={text_id: by for text_id, by in self.handed.items() if text_id not in ids},
            queue={text_id: text for text_id, text in self.queue.items() if text_id not in ids},
            told=(*(text_id for text_id in self.told if text_id not in ids), *ids)[-MAX_TOLD:],
        )


_KINDS: Mapping[str, Callable[[Any], Any]] = {name: type(value) for name, value in vars(Listener()).items()}


@dataclass(frozen=True)
class Note:
    """What is known of one client session.

    Attributes:
        listeners: Its agents, by their ids; that of its main agent is empty.
        spent: When and with how many characters texts were handed over lately.
        failure: What has ended its last turn, such as a limit, and when, for whoever supervises it.
    """

    listeners: Mapping[str, Listener] = field(default_factory=dict)
    spent: tuple[tuple[float, int], ...] = ()
    failure: Mapping[str, str] = field(default_factory=dict)

    def listener(self, agent: str) -> Listener:
        """Return what is known of one agent."""
        return self.listeners.get(agent) or Listener()

    def with_listener(self, agent: str, listener: Listener) -> Note:
        """Replace what is known of one agent; of very many sub-agents the first are forgotten."""
        others = {name: known for name, known in self.listeners.items() if name != agent}
        while len(others) >= MAX_LISTENERS:
            others.pop(next(name for name in others if name))
        return replace(self, listeners={**others, agent: listener})

    def room(self, now: float) -> tuple[int, int]:
        """Return how many texts and characters may be handed over now."""
        recent = [size for at, size in self.spent if now - QUOTA_SECONDS < at <= now]
        return QUOTA_TEXTS - len(recent), QUOTA_CHARACTERS - sum(recent)

    def spending(self, sizes: Iterable[int], now: float) -> Note:
        """Note that texts of these sizes are handed over."""
        recent = [spent for spent in self.spent if now - QUOTA_SECONDS < spent[0] <= now]
        return replace(self, spent=(*recent, *((now, size) for size in sizes)))


class ClientSession:
    """The note of one session of a client, by its key. What has not changed is not read again."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._folder = notes_folder()
        self._file = f"{key}.json"
        self._stamp: tuple[int, int, int] | None = None
        self._note = Note()

    def note(self) -> Note:
        """Read what is known; nothing if the file cannot be read."""
        with suppress(OSError), Folder.open(self._folder, inside=self._folder) as folder:
            return self._read(folder)
        return Note()

    def change(self, change: Callable[[Note], Note]) -> Note:
        """Apply a change to the stored note, alone among all processes. It blocks.

        Raises:
            OSError, DeepWorkError: It cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (
            Folder.open(self._folder, inside=self._folder) as folder,
            folder.locked(_LOCK, subject="the notes of client sessions", seconds=1),
        ):
            note = self._read(folder)
            changed = change(note)
            if changed != note:
                is_new = self._stamp is None
                folder.replace(self._file, json.dumps(asdict(changed)).encode(), synced=False)
                if is_new:
                    _remove_old(folder)
            return changed

    def change_listener(self, agent: str, change: Callable[[Listener], Listener]) -> Note:
        """Apply a change to what is known of one agent."""
        return self.change(lambda note: note.with_listener(agent, change(note.listener(agent))))

    def _read(self, folder: Folder) -> Note:
        try:
            status = folder.status(self._file)
        except FileNotFoundError:
            self._stamp, self._note = None, Note()
            return self._note
        stamp = status.st_mtime_ns, status.st_ino, status.st_size
        if stamp != self._stamp:
            self._note = _parsed(folder.read(self._file))
            self._stamp = stamp
        return self._note


def key_of(client: str, session: str, principal: str = LOCAL) -> str:
    """Return the key of the note of a client session, which tells it from those of all clients and principals."""
    owner = [] if principal == LOCAL else [principal]
    return sha256(json.dumps([client, session, *owner]).encode()).hexdigest()[:32]


def notes_folder() -> Path:
    """Return the folder of the notes."""
    return user_state_dir(os.environ) / "client-sessions"


def _parsed(content: bytes | None) -> Note:
    """Return a note; an empty one for a file that was not written so."""
    try:
        data = json.loads(content or b"{}")
        listeners = data.get("listeners", {"": data})  # a release before sub-agents knew one agent
        return Note(
            {
                agent: Listener(**{name: kind(known[name]) for name, kind in _KINDS.items() if name in known})
                for agent, known in listeners.items()
            },
            tuple((float(at), int(size)) for at, size in data.get("spent", ())),
            dict(data.get("failure", {})),
        )
    except (ValueError, TypeError, AttributeError):
        return Note()


def _remove_old(folder: Folder) -> None:
    for name in folder.names():
        with suppress(OSError):
            if name.endswith(".json") and time.time() - folder.status(name).st_mtime > KEPT_SECONDS:
                folder.remove(name)
