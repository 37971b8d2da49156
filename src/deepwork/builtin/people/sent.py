"""The state of each item that each target has been sent, in memory and in a file of the user's state folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from deepwork.paths.folder import Folder

FILE = "sent.json"
# A list that is cut does not tell what no longer waits, so its notes are forgotten by their age only.
MAX_NOTES = 20_000

# A target, and the id of an item.
Key = tuple[str, str]


class SentNotes:
    """What was sent. It has as many entries as there are items that wait, for each target, and `MAX_NOTES` at most.

    Args:
        folder: Where the file is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._states: dict[Key, str] = {}
        self._saved: dict[Key, str] = {}
        self._saving = Lock()

    def state(self, key: Key) -> str | None:
        """Return the state that was sent."""
        return self._states.get(key)

    def add(self, key: Key, state: str) -> None:
        """Note what was sent."""
        self._states.pop(key, None)  # it becomes the newest
        self._states[key] = state

    def keep(self, is_kept: Callable[[Key], bool]) -> None:
        """Forget everything else."""
        notes = [(key, state) for key, state in self._states.items() if is_kept(key)]
        self._states = dict(notes[-MAX_NOTES:])

    def read(self) -> None:
        """Read the file; a damaged file counts as empty: told twice is better than never."""
        try:
            with Folder.open(self._folder, inside=self._folder) as folder:
                content = folder.read(FILE)
            targets = json.loads(content or b"{}")
            self._states = {
                (str(target), str(item)): str(state)
                for target, states in targets.items()
                for item, state in states.items()
            }
        except (OSError, ValueError, AttributeError):
            self._states = {}
        self._saved = self._states

    def save(self) -> None:
        """Write the file, if anything has changed since.

        Raises:
            OSError: It cannot be written.
            StorageError: It cannot be synced.
        """
        with self._saving:
            states = dict(self._states)
            if states == self._saved:
                return
            targets: dict[str, dict[str, str]] = {}
            for (target, item), state in states.items():
                targets.setdefault(target, {})[item] = state
            with Folder.open(self._folder, inside=self._folder) as folder:
                folder.replace(FILE, json.dumps(targets, indent=1).encode())
            self._saved = states
