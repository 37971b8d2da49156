"""Jobs read once and remembered for as long as their files stay as they are."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deepwork.documents.load import MAX_BYTES
from deepwork.errors import JobLoadError, PathRefused
from deepwork.files.paths import is_utf8, open_regular
from deepwork.jobs.parse import FILE_NAME, load_error, parse_content, unreadable
from deepwork.models.jobs import Job

log = logging.getLogger("deepwork.jobs")

# A file changed twice within the resolution of its clock looks unchanged; after this time it cannot.
SETTLED_NS = 2_000_000_000

Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class _Read:
    signature: Signature
    settled: bool
    digest: bytes
    result: Job | JobLoadError


class JobReader:
    """Reads the jobs of one folder of jobs. Safe to use from several threads.

    A changed, added or removed file is seen by the very next call; equal bytes are parsed once.

    Args:
        folder: Has a sub-folder for each job.
        inside: The folder is used only while it lies in this one, links resolved.
    """

    def __init__(self, folder: Path, *, inside: Path | None = None) -> None:
        self.folder = folder
        self._inside = inside
        self._reads: dict[str, _Read] = {}

    @property
    def escapes(self) -> bool:
        """Say whether the folder is a link that leads out of where it has to be."""
        inside = self._inside
        try:
            return inside is not None and not Path(os.path.realpath(self.folder)).is_relative_to(inside)
        except OSError:  # swapped while it was resolved
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
        for gone in set(self._reads).difference(names):
            self._reads.pop(gone, None)
        return sorted(names)

    def read_all(self) -> list[Job | JobLoadError]:
        """Read the jobs of all sub-folders, sorted by these."""
        found = []
        for name in self.names():
            known = self._reads.get(name)
            item = known.result if known and self._is_unchanged(name, known) else self.read(name)
            found += [item] if item else []
        return found

    def _is_unchanged(self, name: str, known: _Read) -> bool:
        try:
            return known.settled and known.signature == _signature(os.stat(f"{self.folder}/{name}/{FILE_NAME}"))
        except OSError:
            return False

    def read(self, name: str) -> Job | JobLoadError | None:
        """Read the job of one sub-folder; None when there is none of that name."""
        job_dir = self.folder / name
        if not _is_plain(name) or self.escapes or not os.path.isdir(job_dir):
            return None
        try:
            known = self._reads.get(name)
            if known and self._is_unchanged(name, known):
                return known.result
            with open_regular(f"{name}/{FILE_NAME}", [self.folder]) as (file, descriptor):
                if not is_utf8(name):
                    return load_error(job_dir, f"the folder's name {name!r} is not UTF-8; replies could not carry it")
                if not file.is_relative_to(os.path.realpath(job_dir)):
                    raise PathRefused("lies outside of the folder of its job")
                if self._inside and not file.is_relative_to(self._inside):  # swapped for a link since it was asked
                    raise PathRefused("lies outside of the project")
                return self._read_anew(name, descriptor, known)
        except FileNotFoundError as error:
            return unreadable(job_dir, error) if os.path.lexists(job_dir / FILE_NAME) else None
        except (PathRefused, OSError) as error:
            return unreadable(job_dir, error)

    def _read_anew(self, name: str, descriptor: int, known: _Read | None) -> Job | JobLoadError:
        now = time.time_ns()
        signature = _signature(os.fstat(descriptor))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(MAX_BYTES + 1)
        digest = sha256(content).digest()
        if known and known.digest == digest:
            result = known.result
        else:
            result = parse_content(content, self.folder / name)
            for warning in result.warnings if isinstance(result, Job) else ():
                log.warning("%s", warning)
        settled = all(now - moment > SETTLED_NS for moment in signature[3:])
        self._reads[name] = _Read(signature, settled, digest, result)
        return result


def _signature(stat: os.stat_result) -> Signature:
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def _is_plain(name: str) -> bool:
    """Say whether a name can be that of a sub-folder."""
    try:
        return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"} and len(os.fsencode(name)) < 256
    except UnicodeEncodeError:
        return False
