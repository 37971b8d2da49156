"""The pages of a project that servers show now: each server notes in the user's state folder where its pages are."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

from deepwork.errors import PathRefused
from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import ProjectFolder

if sys.platform != "win32":
    import fcntl

_LOCK = "lock"
_MAX_NOTE = 64 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ServedPages(ProjectFolder):
    """Where people can look at what waits for them in one project.

    A note counts as long as the process that has written it holds its lock, which ends with the process however it
    ends. It has no token and no code: people log in to the page.
    """

    kind = "pages"

    @contextmanager
    def noted(self, address: str, people: Iterable[str]) -> Iterator[None]:
        """Note where a page is, as long as the block runs.

        Args:
            address: The page of an item of the inbox; `{id}` stands for its id.
            people: The principals in whose name people can log in.

        Raises:
            OSError: It cannot be noted.
            StorageError: Another process holds up all that note something.
        """
        name = f"{secrets.token_hex(8)}.json"
        with self.opened(create=True) as folder:
            with folder.locked(_LOCK, subject="the addresses of pages"):
                _remove_ended(folder)
                note = os.open(name, _NEW, 0o600, dir_fd=folder.descriptor)
                fcntl.flock(note, fcntl.LOCK_EX)
            try:
                os.write(note, json.dumps({"address": address, "people": sorted(people)}).encode())
                yield
            finally:
                with suppress(OSError):
                    folder.remove(name)
                os.close(note)

    def addresses(self, item_id: str, principal: str) -> list[str]:
        """Return the pages that show an item of the inbox to people of a principal, the newest first."""
        notes = []
        with suppress(OSError, PathRefused), self.opened() as folder:
            for name in _names(folder):
                with suppress(OSError, ValueError, LookupError, TypeError), folder.open_file(name) as file:
                    if not _is_free(file.fileno()):
                        note = json.loads(file.read(_MAX_NOTE))
                        if principal in note["people"]:
                            notes.append((os.fstat(file.fileno()).st_mtime_ns, str(note["address"])))
        return [address.replace("{id}", quote(item_id, safe=":")) for _, address in sorted(notes, reverse=True)]


def _names(folder: Folder) -> list[str]:
    return [name for name in folder.names() if name != _LOCK]


def _remove_ended(folder: Folder) -> None:
    """Remove the notes of processes that were killed. Nobody writes one meanwhile: that needs the lock."""
    for name in _names(folder):
        with suppress(OSError), folder.open_file(name) as file:
            if _is_free(file.fileno()):
                folder.remove(name)


def _is_free(descriptor: int) -> bool:
    """True if no process holds the lock of a note. Readers share it, so that none takes another for its writer."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
