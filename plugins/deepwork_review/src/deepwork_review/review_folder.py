"""Where reviews are recorded: their instructions in the project, what was issued and has passed with the user."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deepwork.api import Folder, PluginContext
from deepwork.errors import ArgumentError, PathRefused, StorageError
from deepwork_review.identity import Components, Identity, is_unchanged

FOLDER = "review_instructions"
INSTRUCTION_DAYS = 7
PASS_DAYS = 90
MAX_SUMMARY = 4000

_ID = re.compile(r"^[A-Za-z0-9._-]{1,230}--[0-9a-f]{12}$")


@dataclass(frozen=True)
class PassRecord:
    """The record of a passed review: its time, its reviewer, and their words."""

    review_id: str
    digest: str
    components: Components
    at: str
    by: str
    summary: str | None


class ReviewFolder:
    """Two folders, with up to three files for each review.

    `.deepwork/tmp/review_instructions/ID.md` has its instructions. `ID.json`, what was issued, and `ID.passed`, the
    record of its pass, are in the user's own state folder, so that no repository can bring a pass. Any number of
    processes may use the folders at the same time: a file is replaced as a whole, its name stands for its content, and
    only old files are removed.
    """

    def __init__(self, context: PluginContext) -> None:
        self._workspace = context.workspace
        self._path = self._workspace.state_dir / FOLDER
        self._user_dir = context.user_dir

    @property
    def relative_path(self) -> str:
        """Where it is, relative to the project."""
        return self._workspace.shown(self._path)

    def records_of(self, identities: Iterable[Identity]) -> dict[str, PassRecord]:
        """Find the passes of exactly these reviews, by digest."""
        records: dict[str, PassRecord] = {}
        with self._open_user_dir() as folder:
            if folder is None:
                return {}
            for identity in identities:
                name = f"{identity.review_id}.passed"
                record = _read_record(folder, name)
                if record and record.digest == identity.digest:
                    records[record.digest] = record
                    # The pass is in use, so let it count as new when old ones are removed.
                    with suppress(OSError):
                        _touch(folder, name)
        return records

    def records(self) -> list[PassRecord]:
        """Return all passes, the newest first."""
        with self._open_user_dir() as folder:
            if folder is None:
                return []
            names = [name for name in folder.names() if name.endswith(".passed")]
            records = [record for name in names if (record := _read_record(folder, name))]
        return sorted(records, key=lambda record: record.at, reverse=True)

    def issue(self, reviews: Iterable[tuple[Identity, str]]) -> None:
        """Write the instructions of reviews, and that they were issued.

        Raises:
            StorageError: They cannot be written.
        """
        try:
            self._prepare()
            with (
                Folder.open(self._path, inside=self._workspace.root) as folder,
                Folder.open(self._user_dir, inside=self._user_dir) as user_folder,
            ):
                for identity, text in reviews:
                    issued = {"digest": identity.digest, "components": identity.components}
                    _put(user_folder, f"{identity.review_id}.json", json.dumps(issued).encode())
                    _put(folder, f"{identity.review_id}.md", text.encode(errors="backslashreplace"))
        except PathRefused as error:
            raise StorageError(f"The instructions could not be written: {error.message}") from None
        except OSError as error:
            raise StorageError(f"The instructions could not be written: {error.strerror}") from error

    def mark(self, review_id: str, by: str, summary: str | None) -> None:
        """Record that an issued review has passed.

        Raises:
            ArgumentError: No such review was issued, or its files have changed since.
            StorageError: It cannot be written.
        """
        issued = self._issued(review_id)
        for path, digest in issued["components"]["files"].items():
            if not is_unchanged(self._workspace.root, path, digest):
                raise ArgumentError(
                    f"{path!r} has changed since review {review_id!r} was issued; nothing was recorded",
                    hint="Call get_review_instructions again, and have the new review done.",
                )
        record = {
            **issued,
            "at": datetime.now(UTC).isoformat(),
            "by": by,
            "summary": summary[:MAX_SUMMARY] if summary else None,
        }
        try:
            with Folder.open(self._user_dir, inside=self._user_dir) as folder:
                folder.replace(f"{review_id}.passed", json.dumps(record).encode())
        except (OSError, PathRefused) as error:
            raise StorageError(f"The pass of {review_id!r} could not be recorded") from error

    def clean(self, *, instruction_days: float = INSTRUCTION_DAYS, pass_days: float = PASS_DAYS) -> int:
        """Remove files of at least these ages, and return how many they were."""
        max_days = {".md": instruction_days, ".json": instruction_days, ".passed": pass_days}
        with _open_folder(self._path, self._workspace.root) as folder, self._open_user_dir() as user_folder:
            return sum(_clean(opened, max_days) for opened in (folder, user_folder) if opened)

    def _issued(self, review_id: str) -> dict[str, Any]:
        unknown = ArgumentError(
            f"no review {review_id[:100]!r} was issued here",
            hint="Use the id at the end of the review's instructions, exactly as it is written.",
        )
        if not _ID.match(review_id):
            raise unknown
        with self._open_user_dir() as folder:
            content = folder.read(f"{review_id}.json") if folder else None
        try:
            issued = json.loads(content or b"")
            return {"digest": str(issued["digest"]), "components": dict(issued["components"])}
        except (ValueError, TypeError, KeyError):
            raise unknown from None

    def _prepare(self) -> None:
        self._workspace.prepare_state_dir()
        state_dir, root = self._workspace.state_dir, self._workspace.root
        with Folder.open(state_dir, inside=root) as parent, suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=parent.descriptor)
        os.makedirs(self._user_dir, mode=0o700, exist_ok=True)

    def _open_user_dir(self) -> AbstractContextManager[Folder | None]:
        return _open_folder(self._user_dir, self._user_dir)


@contextmanager
def _open_folder(path: Path, inside: Path) -> Iterator[Folder | None]:
    """Open a folder; None if it does not exist yet.

    Raises:
        StorageError: It leads out of where it has to be, or cannot be read.
    """
    with ExitStack() as stack:
        folder = None
        try:
            folder = stack.enter_context(Folder.open(path, inside=inside))
        except FileNotFoundError:
            pass
        except PathRefused as error:
            raise StorageError(f"{path} cannot be used: {error.message}") from None
        except OSError as error:
            raise StorageError(f"{path} cannot be used: {error.strerror}") from error
        yield folder


def _clean(folder: Folder, max_days: Mapping[str, float]) -> int:
    now = time.time()
    removed = folder.remove_leftovers()
    for name in folder.names():
        # Files of other kinds are not ours, so none is old enough.
        days = max_days.get(os.path.splitext(name)[1], float("inf"))
        with suppress(OSError):
            if now - folder.status(name).st_mtime >= days * 86400:
                folder.remove(name)
                removed += 1
    return removed


def _read_record(folder: Folder, name: str) -> PassRecord | None:
    """Read a pass. The empty files of version 0.9 do not say what has passed, so they do not count."""
    try:
        record = json.loads(folder.read(name) or b"")
        return PassRecord(
            name.removesuffix(".passed"),
            str(record["digest"]),
            dict(record["components"]),
            str(record["at"]),
            str(record["by"]),
            record["summary"],
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _put(folder: Folder, name: str, content: bytes) -> None:
    """Replace a file as a whole, unless it has this content already.

    It is not synced to the disk: what a power cut destroys is issued again by the next call.
    """
    with suppress(OSError):
        if folder.read(name) == content:
            _touch(folder, name)
            return
    folder.replace(name, content, synced=False)


def _touch(folder: Folder, name: str) -> None:
    os.utime(name, dir_fd=folder.descriptor, follow_symlinks=False)
