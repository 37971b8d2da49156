"""Jobs that are read once and remembered for as long as their files stay as they are."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deepwork.documents.limits import MAX_BYTES
from deepwork.errors import JobLoadError, PathRefused
from deepwork.jobs.parse import JobReading, load_error, unreadable
from deepwork.models.jobs import FILE_NAME, Job
from deepwork.paths.paths import is_utf8, open_regular, without_links

log = logging.getLogger("deepwork.jobs")

# A file that is changed twice within the resolution of its clock looks unchanged. After this time it cannot.
SETTLED_NS = 2_000_000_000

# A file within the limits of documents takes up to two seconds of the processor, or ten times its size in memory, and a
# repository can have very many. When parsing has taken so many seconds, no other file is begun until some have been
# earned back: all of them in so many seconds without parsing.
PARSE_SECONDS = 2.0
REFILL_SECONDS = 10.0
MAX_KEPT = 16 * 1024 * 1024
MAX_FOLDERS = 10_000

Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class _CachedJob:
    """What a file held when it was read; `is_settled` if it cannot have changed since under the same stamp."""

    stamp: Stamp
    is_settled: bool
    digest: bytes
    result: Job | JobLoadError


class _Allowance:
    """How many seconds of the processor parsing may still take, so that no call takes long.

    Seconds, not bytes: a file of short values takes far longer than one of the same size with long texts.
    """

    def __init__(self) -> None:
        self._seconds = PARSE_SECONDS
        self._at = time.monotonic()

    def is_left(self) -> bool:
        """True if another file may be parsed."""
        earned = (time.monotonic() - self._at) * PARSE_SECONDS / REFILL_SECONDS
        self._seconds = min(PARSE_SECONDS, self._seconds + earned)
        self._at = time.monotonic()
        return self._seconds > 0

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Take off what the block takes; nothing is earned meanwhile, however long a busy machine makes it."""
        start = time.thread_time()
        try:
            yield
        finally:
            self._seconds -= time.thread_time() - start
            self._at = time.monotonic()


class JobReader:
    """Reads the jobs of one folder of jobs. Safe to use from several threads.

    A changed, added or removed file is seen by the very next call; equal bytes are parsed once.

    Args:
        folder: Has a sub-folder for each job.
        inside: The folder is used only while it lies in this one, links resolved.
    """

    def __init__(self, folder: Path, *, inside: Path | None = None) -> None:
        self.folder = folder
        self._prefix = f"{folder}/"
        self._inside = inside
        self._below = str(folder.relative_to(inside)) if inside and folder.is_relative_to(inside) else None
        self._cache: dict[str, _CachedJob] = {}
        self._allowance = _Allowance()

    @property
    def escapes(self) -> bool:
        """True if the folder is a link that leads out of its allowed place."""
        inside = self._inside
        if inside is None:
            return False
        try:
            if self._below and not os.path.islink(inside) and without_links(str(inside), self._below):
                return False
            return not Path(os.path.realpath(self.folder)).is_relative_to(inside)
        except OSError:  # replaced while it was resolved
            return True

    def names(self) -> list[str]:
        """List the sub-folders, sorted; none if the folder is missing or escapes."""
        try:
            if self.escapes:
                return []
            with os.scandir(self.folder) as entries:
                names = [entry.name for entry in entries if _is_dir(entry)]
        except OSError:
            return []
        for name in set(self._cache).difference(names):
            self._cache.pop(name, None)
        return sorted(names)

    def read_all(self) -> list[Job | JobLoadError]:
        """Read the jobs of all sub-folders, sorted by these.

        Jobs beyond `MAX_KEPT` bytes in all are not read.
        """
        names = self.names()[:MAX_FOLDERS]
        items: dict[str, Job | JobLoadError] = {}
        unread: list[tuple[int, str]] = []
        kept_bytes = 0
        for name in names:
            cached = self._cache.get(name)
            if cached and self._is_unchanged(name, cached):
                items[name] = cached.result
                kept_bytes += cached.stamp[2]
            else:
                unread.append((self._size(name), name))
        for size, name in sorted(unread):  # small ones first, so that a slow one holds up few others
            if kept_bytes + size > MAX_KEPT:
                items[name] = load_error(
                    self.folder / name, f"the jobs of this folder have more than {MAX_KEPT:,} bytes"
                )
            elif item := self.read(name):
                items[name] = item
                kept_bytes += size
        return [items[name] for name in names if name in items]

    def _size(self, name: str) -> int:
        try:
            return min(os.stat(f"{self._prefix}{name}/{FILE_NAME}").st_size, MAX_BYTES)
        except OSError:
            return 0

    def _is_unchanged(self, name: str, cached: _CachedJob) -> bool:
        try:
            return cached.is_settled and cached.stamp == _stamp_of(os.stat(f"{self._prefix}{name}/{FILE_NAME}"))
        except OSError:
            return False

    def read(self, name: str) -> Job | JobLoadError | None:
        """Read the job of one sub-folder; None if it does not exist."""
        job_dir = self.folder / name
        if not _is_plain(name) or self.escapes or not os.path.isdir(job_dir):
            return None
        try:
            cached = self._cache.get(name)
            if cached and self._is_unchanged(name, cached):
                return cached.result
            with open_regular(f"{name}/{FILE_NAME}", [self.folder]) as (file, descriptor):
                if not is_utf8(name):
                    return load_error(job_dir, f"the folder's name {name!r} is not UTF-8; replies could not carry it")
                if not file.is_relative_to(os.path.realpath(job_dir)):
                    raise PathRefused("lies outside of the folder of its job")
                if self._inside and not file.is_relative_to(self._inside):  # replaced by a link meanwhile
                    raise PathRefused("lies outside of the project")
                return self._read_anew(name, descriptor, cached)
        except FileNotFoundError as error:
            return unreadable(job_dir, error) if os.path.lexists(job_dir / FILE_NAME) else None
        except (PathRefused, OSError) as error:
            return unreadable(job_dir, error)

    def _read_anew(self, name: str, descriptor: int, cached: _CachedJob | None) -> Job | JobLoadError:
        now = time.time_ns()
        stamp = _stamp_of(os.fstat(descriptor))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(MAX_BYTES + 1)
        digest = sha256(content).digest()
        if cached and cached.digest == digest:
            result = cached.result
        else:
            if not self._allowance.is_left():
                return load_error(self.folder / name, "not read yet, because others are very large; call again")
            with self._allowance.spent():
                result = JobReading.of(content, self.folder / name).result
            for line in (*result.errors, *result.warnings) if isinstance(result, Job) else ():
                log.warning("%s", line)
        is_settled = all(now - changed_at > SETTLED_NS for changed_at in stamp[3:])
        self._cache[name] = _CachedJob(stamp, is_settled, digest, result)
        return result


def _stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def _is_plain(name: str) -> bool:
    """True if a sub-folder can have this name."""
    try:
        return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"} and len(os.fsencode(name)) < 256
    except UnicodeEncodeError:
        return False
