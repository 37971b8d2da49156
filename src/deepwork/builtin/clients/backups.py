"""What client files were before `deepwork connect` changed them, kept in the user's state folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.paths.folder import Folder
from deepwork.paths.user_folders import user_state_dir

_RECORD = "record.json"


@dataclass(frozen=True)
class Record:
    """The record of a file that was changed.

    Attributes:
        path: The file.
        after: The digest of the written content.
        original: The name of the backup of the content before our first write; None if there was no file.
        is_original_known: False if the file had an entry of ours already when it was first seen.
        made_folders: The folders that were made for it, the innermost first.
        client: Whose file it is. Releases before this one noted neither this nor what follows.
        scope: Whether it is a project's or the user's.
        root: The project for which it was written.
        entry: The entry that was written; None for a file that has hooks alone.
        replaced: The entry in whose place it was written with the user's consent, if it was not ours to replace.
        earlier: The record before that.
    """

    path: str
    after: str = ""
    original: str | None = None
    is_original_known: bool = False
    made_folders: tuple[str, ...] = ()
    client: str | None = None
    scope: str | None = None
    root: str | None = None
    entry: dict[str, Any] | None = None
    replaced: Any = None
    earlier: Record | None = None


class Backups:
    """The backups of one file, in a folder of their own."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._folder = _backups_folder(environment) / sha256(str(path).encode()).hexdigest()[:16]

    def record(self) -> Record | None:
        """Read what is known of the file; None if nothing is, or it cannot be read."""
        return _read(self._folder)

    def original(self, record: Record) -> bytes | None:
        """Read the original content; None if the file did not exist."""
        return (self._folder / record.original).read_bytes() if record.original else None

    def keep(self, record: Record, before: bytes | None, after: bytes, *, consented: bool) -> Path | None:
        """Back up the content that will be replaced, and return the backup's path; None if the file does not exist.

        Args:
            record: The record of the file, without digest and backup.
            before: The content; None if the file does not exist.
            after: What will be written.
            consented: Whether the user has agreed that an entry is replaced which is not ours to replace.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        earlier = self.record()
        with Folder.open(self._folder, inside=self._folder) as folder:
            name = None
            if before is not None:
                name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{self._path.name}"
                folder.replace(name, before)
            record = replace(record, after=digest(after), original=name)
            if earlier and before is not None and earlier.after == digest(before):
                record = _after(earlier, record, consented=consented)
            folder.replace(_RECORD, json.dumps(asdict(record), indent=2).encode() + b"\n")
        return self._folder / name if name else None

    def forget(self) -> None:
        """Forget what was written last, so that what was known before counts again; the backups stay."""
        record = self.record()
        if record and record.earlier:
            with Folder.open(self._folder, inside=self._folder) as folder:
                folder.replace(_RECORD, json.dumps(asdict(record.earlier), indent=2).encode() + b"\n")
        else:
            (self._folder / _RECORD).unlink(missing_ok=True)


def all_records(environment: Mapping[str, str]) -> Iterator[Record]:
    """Read what is known of every file that was changed and is not forgotten."""
    folder = _backups_folder(environment)
    for backups in sorted(folder.iterdir()) if folder.is_dir() else ():
        if record := _read(backups):
            yield record


def digest(content: bytes) -> str:
    """Return what tells one content from another."""
    return sha256(content).hexdigest()


def _after(earlier: Record, record: Record, *, consented: bool) -> Record:
    """Return the record of a file that has not been changed by others since it was written."""
    if consented:
        return replace(record, is_original_known=True, earlier=earlier)
    return replace(
        record,
        original=earlier.original,
        is_original_known=earlier.is_original_known,
        made_folders=earlier.made_folders,
        earlier=earlier.earlier,
    )


def _backups_folder(environment: Mapping[str, str]) -> Path:
    return user_state_dir(environment) / "backups"


def _read(folder: Path) -> Record | None:
    try:
        return _parsed(json.loads((folder / _RECORD).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _parsed(data: dict[str, Any]) -> Record:
    earlier = data.get("earlier")
    return Record(
        **{**data, "made_folders": tuple(data["made_folders"]), "earlier": _parsed(earlier) if earlier else None}
    )
