"""What client files were before `deepwork connect` changed them, kept in the user's state folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from deepwork.files.folder import Folder
from deepwork.files.user_folders import user_state_dir

_RECORD = "record.json"


@dataclass(frozen=True)
class Record:
    """What is known of a file that was changed.

    Attributes:
        path: The file.
        after: The digest of what was written.
        original: The name of the backup of what was there before we wrote anything; None if there was no file.
        is_original_known: False if the file had our entry already when it was first seen.
        made_folders: The folders that were made for it, the innermost first.
    """

    path: str
    after: str
    original: str | None
    is_original_known: bool
    made_folders: tuple[str, ...] = ()


class Backups:
    """The backups of one file, in a folder of their own."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._folder = user_state_dir(environment) / "backups" / sha256(str(path).encode()).hexdigest()[:16]

    def record(self) -> Record | None:
        """Read what is known of the file; None if nothing is, or it cannot be read."""
        try:
            data = json.loads((self._folder / _RECORD).read_bytes())
            return Record(**{**data, "made_folders": tuple(data["made_folders"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def original(self, record: Record) -> bytes | None:
        """Read what was there before; None if there was no file."""
        return (self._folder / record.original).read_bytes() if record.original else None

    def keep(self, before: bytes | None, after: bytes, *, has_ours: bool, made_folders: tuple[str, ...]) -> None:
        """Back up what is about to be replaced.

        Args:
            before: The content; None if there is no file.
            after: What will be written.
            has_ours: Whether the content has something of ours already.
            made_folders: The folders that are about to be made.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        earlier = self.record()
        with Folder.open(self._folder, inside=self._folder) as folder:
            name = None
            if before is not None:
                name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{self._path.name}"
                folder.replace(name, before)
            record = Record(str(self._path), digest(after), name, not has_ours, made_folders)
            if earlier and before is not None and earlier.after == digest(before):
                record = Record(
                    str(self._path), digest(after), earlier.original, earlier.is_original_known, earlier.made_folders
                )
            folder.replace(_RECORD, json.dumps(asdict(record), indent=2).encode() + b"\n")

    def forget(self) -> None:
        """Forget what was written; the backups stay."""
        (self._folder / _RECORD).unlink(missing_ok=True)


def digest(content: bytes) -> str:
    """Give what tells one content from another."""
    return sha256(content).hexdigest()
