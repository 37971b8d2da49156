"""What makes a review the same review, which have passed, and the files in which that is kept.

A review that has passed is left out for as long as nothing changes that could change its result: the rule with all its
text, its folder, for whom it is, every file with its content, and everything else that its instructions tell.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.api import (
    ArgumentError,
    PathRefused,
    StorageError,
    Workspace,
    is_leftover,
    open_folder,
    open_regular,
    read_in,
    write_durably,
)

FOLDER = "review_instructions"
VERSION = 1
INSTRUCTION_DAYS = 7
PASS_DAYS = 90
LEFTOVER_SECONDS = 3600
MAX_SUMMARY = 4000
DELETED = "deleted"
UNREADABLE = "unreadable"

_ID = re.compile(r"^[A-Za-z0-9._-]{1,230}--[0-9a-f]{12}$")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")

Components = Mapping[str, Any]


@dataclass(frozen=True)
class Identity:
    """Everything that matters to a review, by name, and one digest of it."""

    components: Components
    review_id: str
    digest: str


@dataclass(frozen=True)
class Passed:
    """A review that has passed, by whom, and what it found."""

    review_id: str
    digest: str
    components: Components
    at: str
    by: str
    summary: str | None


def identify(rule: str, paths: Iterable[str], components: Components) -> Identity:
    """Give a review its id: readable, and different as soon as any component is."""
    text = json.dumps({"version": VERSION, **components}, sort_keys=True, separators=(",", ":"))
    digest = sha256(text.encode()).hexdigest()
    names = sorted(paths)
    joined = _UNSAFE.sub("-", "_AND_".join(names))
    if len(joined) > 100:
        joined = f"{len(names)}_files"
    return Identity(components, f"{rule[:100]}--{joined}--{digest[:12]}", digest)


def content_digest(root: Path, path: str) -> str:
    """Say what a file is and holds, in a few characters. What cannot be read is never the same twice."""
    try:
        found = os.lstat(root / path)
        if stat.S_ISLNK(found.st_mode):
            return f"link {sha256(os.fsencode(os.readlink(root / path))).hexdigest()}"
        with open_regular(path, [root]) as (_, descriptor):
            kind = "program" if os.fstat(descriptor).st_mode & stat.S_IXUSR else "file"
            with os.fdopen(os.dup(descriptor), "rb") as file:
                digest = sha256()
                while chunk := file.read(1024 * 1024):
                    digest.update(chunk)
        return f"{kind} {digest.hexdigest()}"
    except (PathRefused, OSError):
        return f"{UNREADABLE} {secrets.token_hex(16)}"


def text_digest(text: str) -> str:
    """Stand for a text."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def difference(before: Components, now: Components, name: str = "") -> Iterator[str]:
    """Name the components that differ."""
    for key in sorted({*before, *now}):
        one, other = before.get(key), now.get(key)
        full = f"{name}: {key}" if name else key
        if one == other:
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from difference(one, other, full)
        elif key not in before or key not in now:
            yield f"{full} ({'new' if key not in before else 'gone'})"
        else:
            yield full


class ReviewFolder:
    """`.deepwork/tmp/review_instructions`: for each review its instructions, what was issued, and whether it passed.

    Any number of processes may use it at once: files appear whole, their names stand for their content, and nobody
    removes what is not old.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._path = workspace.state_dir / FOLDER

    @property
    def shown(self) -> str:
        """Where it is, relative to the project."""
        return self._workspace.shown(self._path)

    def find(self, identities: Iterable[Identity]) -> dict[str, Passed]:
        """Find the passes of exactly these reviews, by digest."""
        found: dict[str, Passed] = {}
        with self._open() as folder:
            for identity in identities if folder is not None else ():
                name = f"{identity.review_id}.passed"
                one = _read_pass(folder, name) if folder is not None else None
                if one and one.digest == identity.digest:
                    found[one.digest] = one
                    with suppress(OSError):  # it is in use: clean it later
                        os.utime(name, dir_fd=folder, follow_symlinks=False)
        return found

    def passes(self) -> list[Passed]:
        """Give all passes, the newest first."""
        with self._open() as folder:
            if folder is None:
                return []
            read = (_read_pass(folder, name) for name in os.listdir(folder) if name.endswith(".passed"))
            return sorted((one for one in read if one), key=lambda one: one.at, reverse=True)

    def issue(self, reviews: Iterable[tuple[Identity, str]]) -> None:
        """Write the instructions of reviews, and that they were issued.

        Raises:
            StorageError: They cannot be written.
        """
        try:
            self._prepare()
            with open_folder(self._path, inside=self._workspace.root) as folder:
                for identity, text in reviews:
                    record = {"digest": identity.digest, "components": identity.components}
                    _put(folder, f"{identity.review_id}.json", json.dumps(record).encode())
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
        for path, before in issued["components"]["files"].items():
            if _changed(self._workspace.root, path, before):
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
            content = json.dumps(record).encode()
            write_durably(self._path / f"{review_id}.passed", content, inside=self._workspace.root)
        except (OSError, PathRefused) as error:
            raise StorageError(f"The pass of {review_id!r} could not be recorded") from error

    def clean(self, *, instructions_days: float = INSTRUCTION_DAYS, pass_days: float = PASS_DAYS) -> int:
        """Remove what is old, and give the number of files."""
        now, removed = time.time(), 0
        ages = {".md": instructions_days, ".json": instructions_days, ".passed": pass_days}
        with self._open() as folder:
            for name in os.listdir(folder) if folder is not None else ():
                days = ages.get(os.path.splitext(name)[1])
                seconds = LEFTOVER_SECONDS if is_leftover(name) else None if days is None else days * 86400
                with suppress(OSError):
                    age = now - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
                    if seconds is not None and age >= seconds:
                        os.unlink(name, dir_fd=folder)
                        removed += 1
        return removed

    def _issued(self, review_id: str) -> dict[str, Any]:
        unknown = ArgumentError(
            f"no review {review_id[:100]!r} was issued here",
            hint="Use the id at the end of the review's instructions, as it stands there.",
        )
        if not _ID.match(review_id):
            raise unknown
        with self._open() as folder:
            content = read_in(folder, f"{review_id}.json") if folder is not None else None
        try:
            found = json.loads(content or b"")
            return {"digest": str(found["digest"]), "components": dict(found["components"])}
        except (ValueError, TypeError, KeyError):
            raise unknown from None

    def _prepare(self) -> None:
        self._workspace.prepare_state_dir()
        state_dir, root = self._workspace.state_dir, self._workspace.root
        with open_folder(state_dir, inside=root) as above, suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=above)

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        """Open the folder; None if there is none yet.

        Raises:
            StorageError: It leads out of the project, or cannot be read.
        """
        with ExitStack() as stack:
            folder = None
            try:
                folder = stack.enter_context(open_folder(self._path, inside=self._workspace.root))
            except FileNotFoundError:
                pass
            except PathRefused as error:
                raise StorageError(f"{self.shown} cannot be used: {error.message}") from None
            except OSError as error:
                raise StorageError(f"{self.shown} cannot be used: {error.strerror}") from error
            yield folder


def _changed(root: Path, path: str, before: str) -> bool:
    if before == DELETED:
        return os.path.lexists(root / path)
    return not before.startswith(UNREADABLE) and before != content_digest(root, path)


def _read_pass(folder: int, name: str) -> Passed | None:
    """Read a pass; empty ones of 0.9 say nothing about what has passed, and do not count."""
    try:
        found = json.loads(read_in(folder, name) or b"")
        return Passed(
            name.removesuffix(".passed"),
            str(found["digest"]),
            dict(found["components"]),
            str(found["at"]),
            str(found["by"]),
            found["summary"],
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _put(folder: int, name: str, content: bytes) -> None:
    """Replace a file at once, unless it is right already. Not synced: what a power cut loses is issued anew."""
    with suppress(OSError):
        if read_in(folder, name) == content:
            os.utime(name, dir_fd=folder, follow_symlinks=False)
            return
    beside = f".{name[:200]}.{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
    os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
