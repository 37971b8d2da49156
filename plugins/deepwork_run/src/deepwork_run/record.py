"""What is known of the run of a session: a file of events, one a line, beside transcripts and the lock of the runner.

It is in the state folder of the project. Nothing in it makes anybody start or kill a program.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from deepwork.api import Folder, Workspace
from deepwork.errors import DeepWorkError, StorageError

if os.name == "posix":
    import fcntl

RUNS = "runs"
EVENTS = "events.jsonl"
LOCK = "lock"
LOG = "runner.log"
MAX_LOGGED = 1024 * 1024
# A look at a lock, and the first line in it, take less than this.
LOCK_SECONDS = 1.0
# What each event has besides its time. The file is in the project, so anything may stand in it; the rest is not ours.
FIELDS: dict[str, dict[str, Any]] = {
    "run": {"options": dict},
    "worker": {"number": int, "agent": str, "hooks": bool, "step_id": str},
    "worker_ended": {"number": int, "end": str, "calls": int},
    "spent": {"id": str, "worker": int, "agent": str, "step_id": str}
    | {"input_tokens": int, "output_tokens": int, "cost_usd": float | int | None},
    "paused": {"cause": str, "what": str},
    "answered": {"action": str},
    "notice": {"what": str},
    "ended": {"exit_code": int},
}
CONTINUE, STOP = "continue", "stop"
MAX_TRANSCRIPT = 32 * 1024 * 1024
TRANSCRIPT_DAYS = 30


@dataclass
class Worker:
    """One process of an agent."""

    number: int
    agent: str
    started_at: str
    hooks: bool = False
    step_id: str = ""
    ended_at: str | None = None
    end: str = ""
    calls: int = 0


@dataclass
class Pause:
    """Why a run waits for a person: `budget`, `time`, `no-progress` or `login`; and what they have answered."""

    kind: str
    what: str
    since: str
    answer: str | None = None


@dataclass
class Run:
    """What the events of a run come to."""

    session_id: str
    workers: list[Worker] = field(default_factory=list)
    spent: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    pause: Pause | None = None
    notice: str = ""
    notice_at: str = ""
    # How often a person has given the whole budget once more.
    grants: int = 0
    exit_code: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_asking(self) -> bool:
        """True if a person is asked, and has not answered."""
        return self.pause is not None and self.pause.answer is None

    def totals(self, agent: str | None = None) -> dict[str, Any]:
        """Add up what was spent, by one agent or by all; dollars are null if they are unknown."""
        records = [record for (owner, _), record in self.spent.items() if agent in (None, owner)]
        costs = [record["cost_usd"] for record in records if record["cost_usd"] is not None]
        return {
            "input_tokens": sum(record["input_tokens"] for record in records),
            "output_tokens": sum(record["output_tokens"] for record in records),
            "cost_usd": round(sum(costs), 9) if costs else None,
        }

    def take(self, event: dict[str, Any]) -> None:
        """Add an event that has its fields."""
        values, at = {name: event[name] for name in FIELDS[event["kind"]]}, event["at"]
        match event["kind"]:
            case "run":
                self.options, self.exit_code, self.pause = values["options"], None, None
            case "worker":
                self.workers.append(Worker(**values, started_at=at))
            case "worker_ended":
                for worker in self.workers:
                    if worker.number == values["number"]:
                        worker.ended_at, worker.end, worker.calls = at, values["end"], values["calls"]
            case "spent":
                self.spent[values["agent"], values["id"]] = values
            case "paused":
                self.pause = Pause(values["cause"], values["what"], at)
            case "answered" if self.pause:
                self.pause.answer = values["action"]
                self.grants += self.pause.kind == "budget" and values["action"] == CONTINUE
            case "notice":
                self.notice, self.notice_at = values["what"], at
            case "ended":
                self.exit_code, self.notice = values["exit_code"], ""


class Record:
    """The files of the run of one session."""

    def __init__(self, workspace: Workspace, session_id: str) -> None:
        self._workspace = workspace
        self.session_id = session_id

    def read(self) -> Run:
        """Read the record; a line that was cut off, or is not ours, counts as nothing.

        Raises:
            StorageError: It cannot be read, so what was spent is not known.
        """
        run = Run(self.session_id)
        try:
            with self.folder() as folder:
                lines = (folder.read(EVENTS) or b"").splitlines()
        except FileNotFoundError:
            return run
        except OSError as error:
            raise StorageError(f"the record of the run of session {self.session_id} cannot be read: {error}") from error
        for line in lines:
            with suppress(ValueError, RecursionError):
                event = json.loads(line)
                if _is_ours(event):
                    run.take(event)
        return run

    def stamp(self) -> tuple[int, int]:
        """Return what differs after every event."""
        with suppress(OSError, DeepWorkError), self.folder() as folder:
            status = folder.status(EVENTS)
            return status.st_size, status.st_mtime_ns
        return 0, 0

    def look(self) -> tuple[int, int, int | None]:
        """Return what differs after every event, and once its runner begins or dies."""
        return (*self.stamp(), self.runner())

    def add(self, kind: str, **values: Any) -> dict[str, Any]:
        """Add an event durably, and return it."""
        event = {"at": datetime.now(UTC).isoformat(timespec="microseconds"), "kind": kind, **values}
        line = json.dumps(event).encode()
        with self.folder(create=True) as folder, _appended(folder, EVENTS) as descriptor:
            # A process may have died within the line before.
            os.write(descriptor, b"\n" + line + b"\n")
            os.fsync(descriptor)
        return event

    @contextmanager
    def transcript(self, number: int) -> Iterator[_Transcript]:
        """Open the transcript of a worker."""
        with self.folder(create=True) as folder, _appended(folder, f"worker-{number}.jsonl") as descriptor:
            yield _Transcript(descriptor)

    def transcript_of(self, number: int) -> bytes | None:
        """Return the transcript of a worker; None if it is gone."""
        with suppress(FileNotFoundError), self.folder() as folder:
            return folder.read(f"worker-{number}.jsonl", limit=2 * MAX_TRANSCRIPT)
        return None

    @contextmanager
    def log(self) -> Iterator[int]:
        """Open the file for what a runner without a terminal prints, and forget what the one before has printed."""
        with self.folder(create=True) as folder, _appended(folder, LOG) as descriptor:
            os.ftruncate(descriptor, 0)
            yield descriptor

    def logged(self) -> str:
        """Return what a runner without a terminal has printed."""
        with suppress(OSError), self.folder() as folder:
            return (folder.read(LOG, limit=MAX_LOGGED) or b"").decode("utf-8", "replace")
        return ""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one runner of this session on this machine.

        Raises:
            DeepWorkError: Another process is.
        """
        with self.folder(create=True) as folder, _appended(folder, LOCK) as descriptor:
            # Whoever looks for the runner shares the lock for a moment; a runner keeps it.
            patience = time.monotonic() + LOCK_SECONDS
            while not _take(descriptor, fcntl.LOCK_EX):
                runner = self.runner()
                if runner is not None or time.monotonic() > patience:
                    raise DeepWorkError(
                        f"process {runner or 'of an unknown id'} runs session {self.session_id} already; "
                        "nothing was started",
                        hint=f"deepwork runs stop {self.session_id} ends it.",
                    )
                time.sleep(0.001)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            yield
            os.ftruncate(descriptor, 0)

    def runner(self) -> int | None:
        """Return the process that runs this session; None if none does."""
        with suppress(OSError, DeepWorkError), self.folder() as folder, folder.open_file(LOCK) as file:
            patience = time.monotonic() + LOCK_SECONDS
            while not _take(file.fileno(), fcntl.LOCK_SH):
                # A process that has just taken the lock writes its id a moment later.
                if (pid := _holder(file.fileno())) or time.monotonic() > patience:
                    return pid
                time.sleep(0.01)
        return None

    def folder(self, *, create: bool = False) -> Folder:
        """Open the folder of this session.

        Raises:
            FileNotFoundError: It does not exist, and is not to be made.
        """
        if create:
            self._workspace.prepare_state_dir()
        with _runs(self._workspace, create=create) as folder:
            return _below(folder, self.session_id, create=create)


class _Transcript:
    """An open transcript, which takes lines until it is full."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._room = MAX_TRANSCRIPT

    def keep(self, line: bytes) -> None:
        """Take a line."""
        if self._room > 0:
            self._room -= len(line) + 1
            text = line if self._room >= 0 else b'{"deepwork": "the transcript is full: what follows is not kept"}'
            with suppress(OSError):
                os.write(self._descriptor, text + b"\n")


def records(workspace: Workspace) -> list[Record]:
    """Return the runs that are known, the last changed first."""
    with suppress(OSError, DeepWorkError), _runs(workspace) as folder:
        found = [Record(workspace, name) for name in folder.names()]
        return sorted(found, key=lambda record: record.stamp()[1], reverse=True)
    return []


def remove_old_transcripts(workspace: Workspace) -> None:
    """Remove what was kept for thirty days."""
    limit = time.time() - TRANSCRIPT_DAYS * 86400
    for record in records(workspace):
        with suppress(OSError, DeepWorkError), record.folder() as folder:
            for name in folder.names():
                if name.startswith("worker-") and folder.status(name).st_mtime < limit:
                    folder.remove(name)


def _is_ours(event: Any) -> bool:
    """True if an event has the fields of its kind."""
    if not isinstance(event, dict) or not isinstance(event.get("at"), str):
        return False
    fields = FIELDS.get(str(event.get("kind")))
    return fields is not None and all(isinstance(event.get(name, ...), kind) for name, kind in fields.items())


def _take(descriptor: int, kind: int) -> bool:
    """Take a lock; False if another process holds it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> int | None:
    """Return the process that holds a lock: by the kernel, and where it does not say, by what stands in the file.

    The file is in the project, so what stands in it may be the id of any process.
    """
    with suppress(ValueError, OverflowError, OSError):
        written = int(os.pread(descriptor, 20, 0))
        with suppress(OSError), open("/proc/locks", encoding="ascii") as locks:
            # `12: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`; the device differs from that of `stat` on some systems
            inode = f":{os.fstat(descriptor).st_ino}"
            rows = [row.split() for row in locks]
            holders = [int(row[4]) for row in rows if row[1] == "FLOCK" and row[5].endswith(inode)]
            if holders:
                return written if written in holders else None
        os.kill(written, 0)
        return max(written, 0) or None
    return None


def _runs(workspace: Workspace, *, create: bool = False) -> Folder:
    with Folder.open(workspace.state_dir, inside=workspace.root) as state:
        return _below(state, RUNS, create=create)


def _below(folder: Folder, name: str, *, create: bool) -> Folder:
    """Open a folder in another one, through no link: what is written and removed in it must be of this project."""
    if not create:
        folder.status(name)
    return folder.subfolder(name)


@contextmanager
def _appended(folder: Folder, name: str) -> Iterator[int]:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(name, flags, 0o600, dir_fd=folder.descriptor)
    except OSError as error:
        raise StorageError(f"the file {name!r} of a run cannot be opened: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
