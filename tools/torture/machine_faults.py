"""Faults of the machine, below a store that is in files: writes that fail, limits, a disk that is full or read-only."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from scenes import FIRST_START, Scene, Stage
from stores import Database, Files, Store, opened_store
from suffering import LONGEST, Suffering, Trouble

from deepwork.builtin.json_store.changes import CHANGES

ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG)
INJECTED = Path(__file__).parent / "injected"
MOST_WRITES = 100
PAGE = 4096
MOMENT = 1.0  # seconds
# What SQLite says, which does not tell one error of the system from another.
SQLITE_CAUSES = (
    "database or disk is full",
    "disk I/O error",
    "unable to open database file",
    "attempt to write a readonly database",
)


class FailingWrite(Trouble):
    """One of the writes of a call, by its number, fails with an error."""

    def __init__(self, control: Path, number: int, error: int, causes: Sequence[str]) -> None:
        super().__init__(f"write {number}", [*causes, os.strerror(error)], self._failing)
        self._control = control
        self._order = f"{number} {error}"
        self.happened = False

    @contextmanager
    def _failing(self) -> Iterator[None]:
        report = self._control.with_name(f"failed-{self._order.replace(' ', '-')}")
        self._control.write_text(f"{report.name} {self._order}")
        yield
        self._control.unlink()
        if report.exists():
            self.happened = True
            self.name = report.read_text()
            report.unlink()


class Machine:
    """A stage whose machine can be brought into trouble."""

    def __init__(self, suffering: Suffering, folder: Path, store: Store, *, causes: Sequence[str] = ()) -> None:
        self._suffering = suffering
        self._causes = causes
        self._controls = [folder / "control"]
        root = folder / "project"
        root.mkdir()
        path = os.pathsep.join(filter(None, [str(INJECTED), os.environ.get("PYTHONPATH")]))
        env = {"PYTHONPATH": path, "DEEPWORK_TORTURE": str(self._controls[0])}
        if isinstance(store, Database) and shutil.which("cc"):
            self._controls.append(folder / "control-of-sqlite")
            env |= {"LD_PRELOAD": str(_failing_files(folder)), "DEEPWORK_TORTURE_SQLITE": str(self._controls[1])}
        self.stage = Stage(root, store, env)

    def fail_each_write(self, *, quick: bool) -> str:
        """Make the first write of each call fail, then the second, until the call passes."""
        counts: Counter[str] = Counter()
        for scene in self.stage.scenes:
            stacks = {
                stack for control in self._controls for stack in self._fail_writes(scene, control, counts, quick=quick)
            }
            if len(stacks) != 1:
                self._suffering.changed.append(f"{scene.name}: the stacks afterwards are {stacks}")
        return (
            f"injected: {counts['writes']:,} writes failed in calls of {len(self.stage.scenes)} situations, "
            f"{counts['refused']:,} calls were refused"
        )

    def _fail_writes(self, scene: Scene, control: Path, counts: Counter[str], *, quick: bool) -> Iterator[str]:
        """Make the writes of one call fail; yield the stack after each."""
        for number in range(1, MOST_WRITES):
            errors = [ERRORS[number % len(ERRORS)]] if quick else ERRORS
            faults = [FailingWrite(control, number, error, self._causes) for error in errors]
            for fault in faults:
                failed, stack = self._suffering.suffer(self.stage, scene, fault)
                counts.update(writes=fault.happened, refused=failed)
                is_note = CHANGES in fault.name  # without it the next reader looks at all sessions
                if fault.happened and not failed and not self._causes and not is_note:
                    self._suffering.unnamed.append(f"{scene.name}, {fault.name}: the call was not refused")
                yield stack
            if not any(fault.happened for fault in faults):
                break

    def limit_file_size(self) -> str:
        """Forbid the server to write files over a few bytes, and allow it again."""
        causes = [os.strerror(errno.EFBIG), *self._causes]
        limited = partial(_limited, self.stage.server.process.pid)
        troubles = [Trouble(f"files limited to {size} bytes", causes, partial(limited, size)) for size in (0, 1000)]
        failed = self._suffering.suffer_each(self.stage, self.stage.scenes, *troubles)
        return f"real: {failed} calls under prlimit --fsize"

    def close(self) -> None:
        self._suffering.close(self.stage)


def files_faults(suffering: Suffering, folder: Path, *, quick: bool) -> Iterator[str]:
    """Have writes of files fail, and disks that are full or read-only."""
    machine = Machine(suffering, folder, Files())
    stage, disk = machine.stage, machine.stage.project.state
    yield machine.fail_each_write(quick=quick)
    yield machine.limit_file_size()
    with small_disk(disk, "256k") as problem:
        if problem:
            yield f"SKIPPED: full and read-only tmpfs; {problem}"
        else:
            (disk / ".gitignore").write_text("*\n")
            yield _fill_disk(suffering, stage, disk, ())
            trouble = Trouble("read-only", [os.strerror(errno.EROFS)], partial(_read_only, disk))
            yield f"real: {suffering.suffer_each(stage, _lasting(stage), trouble)} calls on a read-only tmpfs"
    machine.close()


def sqlite_faults(suffering: Suffering, folder: Path, *, quick: bool) -> Iterator[str]:
    """Have writes of SQLite fail, disks that are full or read-only, and a database that another has locked."""
    if shutil.which("cc") is None:
        yield "SKIPPED: what SQLite writes; a C compiler is not installed, and Python does not see it"
    disk = folder / "disk"
    disk.mkdir()
    with small_disk(disk, "8m") as problem, opened_store("sqlite", disk) as store:
        assert isinstance(store, Database)
        machine = Machine(suffering, folder, store, causes=SQLITE_CAUSES)
        yield machine.fail_each_write(quick=quick)
        yield machine.limit_file_size()
        yield from locks(suffering, machine.stage, "BEGIN IMMEDIATE", refusal="database is locked", quick=quick)
        if problem:
            yield f"SKIPPED: full and read-only tmpfs; {problem}"
        else:
            yield _fill_disk(suffering, machine.stage, disk, SQLITE_CAUSES)
        machine.close()
        if not problem:
            stage = Stage(folder / "project", store, {})  # its server has not used the database yet
            trouble = Trouble("read-only at the first use", SQLITE_CAUSES, partial(_read_only, disk))
            yield f"real: {suffering.suffer_each(stage, stage.scenes[1:2], trouble)} first use on a read-only tmpfs"
            suffering.close(stage)


def _fill_disk(suffering: Suffering, stage: Stage, disk: Path, causes: Sequence[str]) -> str:
    """Leave so few pages of a small disk free that calls fail."""
    causes = [os.strerror(errno.ENOSPC), *causes]
    full = partial(_without_log, stage.project.store, disk)
    troubles = [Trouble(f"{pages} pages left", causes, partial(full, pages)) for pages in range(8)]
    return f"real: {suffering.suffer_each(stage, _lasting(stage), *troubles)} calls on a full tmpfs"


def locks(suffering: Suffering, stage: Stage, statement: str, *, refusal: str, quick: bool) -> Iterator[str]:
    """Have another connection lock the database, for a moment and for longer than servers wait."""
    store = stage.project.store
    assert isinstance(store, Database)
    trouble = Trouble("locked for a moment", (), partial(_locked, store, statement, MOMENT))
    suffering.suffer_each(stage, stage.scenes, trouble)
    yield f"real: {len(stage.scenes)} calls while the database was locked for a moment"
    if not quick:
        trouble = Trouble("locked for long", [refusal], partial(_locked, store, statement, LONGEST))
        yield suffering.suffer_together(stage, stage.scenes, trouble)


def _lasting(stage: Stage) -> list[Scene]:
    """Return the scenes that leave the state folder where it is, which a disk of its own is mounted on."""
    return [scene for scene in stage.scenes if scene is not FIRST_START]


@contextmanager
def _limited(pid: int, size: int) -> Iterator[None]:
    """Forbid a process to write files over a few bytes, and allow it again."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def _without_log(store: Store, disk: Path, pages: int) -> Iterator[None]:
    """Fill a disk but for some pages. The log of SQLite would have room for many calls, so it is emptied before."""
    if isinstance(store, Database):
        store.run_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    with filled(disk, pages):
        yield


@contextmanager
def filled(disk: Path, pages: int) -> Iterator[None]:
    """Fill a disk but for some pages."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * PAGE) == PAGE:
                pass
        except OSError:
            file.truncate(max(0, file.tell() // PAGE - pages) * PAGE)
    yield
    filler.unlink()


@contextmanager
def _read_only(disk: Path) -> Iterator[None]:
    for how in ("ro", "rw"):
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True, capture_output=True)
        if how == "ro":
            yield


@contextmanager
def _locked(store: Database, statement: str, seconds: float) -> Iterator[None]:
    """Have another connection hold a lock, for so many seconds at most."""
    is_locked, is_over = threading.Event(), threading.Event()

    def lock() -> None:
        with store.connection() as connection:
            connection.execute(statement)
            is_locked.set()
            is_over.wait(seconds)
            connection.execute("ROLLBACK")

    thread = threading.Thread(target=lock)
    thread.start()
    is_locked.wait()
    yield
    is_over.set()
    thread.join()


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[str]:
    """Mount a small disk for as long as the context lasts; give the reason if this machine does not let us."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        yield f"this machine does not let us mount one ({error})"
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _failing_files(folder: Path) -> Path:
    """Compile what makes writes of SQLite fail."""
    library = folder / "failing_files.so"
    source = INJECTED / "failing_files.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl", "-lpthread"], check=True)
    return library
