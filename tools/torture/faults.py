"""Every write fails once; the call must say why, leave everything as it was, and work when it is made again."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from report import Report
from scenes import FIRST_START, SCENES, Scene, Stage
from servers import tracebacks

from deepwork.paths.folder import is_leftover
from deepwork.testing import Refused

ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG)
INJECTED = Path(__file__).parent / "injected"
MOST_WRITES = 100

Files = dict[str, bytes]


class Faults:
    """What was done to one stage, and what came of it."""

    def __init__(self, stage: Stage, control: Path) -> None:
        self._stage = stage
        self._control = control
        self.counts: Counter[str] = Counter()
        self.unnamed: list[str] = []
        self.changed: list[str] = []
        self.stuck: list[str] = []

    def inject(self, scene: Scene, errors: list[int]) -> None:
        """Make the first write of a call fail, then the second, until a call passes."""
        stacks: set[str] = set()
        for number in range(1, MOST_WRITES):
            passed = False
            for error in errors if len(errors) == len(ERRORS) else [ERRORS[number % len(ERRORS)]]:
                self.counts["tokens"] += 1
                token = f"token{self.counts['tokens']}"
                arguments = scene.prepare(self._stage)
                before = self._files(scene)
                self._control.write_text(f"{token} {number} {error}")
                reply, text = self._call(scene, arguments)
                self._control.unlink()
                failed = self._control.with_name(token)
                passed = not failed.exists()
                if not passed:
                    self._check(scene, failed.read_text(), error, text, before)
                    reply, _ = self._call(scene, arguments)
                self._check_success(scene, f"write {number}", reply)
                stacks.add(str(reply and reply.get("stack")))
                self._stage.clear()
            if passed:
                break
        self.counts["scenes"] += 1
        if len(stacks) != 1:
            self.changed.append(f"{scene.name}: the stacks afterwards are {stacks}")

    def suffer(self, scene: Scene, error: int, what: str, trouble: Callable[[], Any], cure: Callable[[], Any]) -> bool:
        """Make a call while the machine itself is in trouble, and again without; return whether it failed."""
        arguments = scene.prepare(self._stage)
        before = self._files(scene)
        trouble()
        _, text = self._call(scene, arguments)
        cure()
        hit = os.strerror(error) in text or (bool(text) and not scene.answers)
        if hit:
            self._check(scene, what, error, text, before)
            reply, _ = self._call(scene, arguments)
            self._check_success(scene, what, reply)
        self._stage.clear()
        return hit

    def _call(self, scene: Scene, arguments: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        try:
            reply = self._stage.server.call(scene.tool, **arguments)
            return reply, str(reply.get("feedback")) if scene.answers else ""
        except Refused as refused:
            return None, str(refused)

    def _check(self, scene: Scene, what: str, error: int, text: str, before: Files) -> None:
        self.counts["faults"] += 1
        self.counts[errno.errorcode[error]] += 1
        if os.strerror(error) not in text:
            self.unnamed.append(f"{scene.name}, {what}, {os.strerror(error)}: {text[:200]!r}")
        home = self._stage.project.state.parent
        if what == f"fsync {home}" and self._stage.project.state.exists():
            self.changed.append(f"{scene.name}: a folder that could not be synced is trusted from then on")
        after = self._files(scene)
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                self.changed.append(f"{scene.name}, {what}: {name}")

    def _check_success(self, scene: Scene, what: str, reply: dict[str, Any] | None) -> None:
        if reply is None:
            self.stuck.append(f"{scene.name}, after {what}")
        if scene is FIRST_START and (self._stage.project.state / ".gitignore").read_text() != "*\n":
            self.stuck.append(f"{scene.name}, after {what}: the state is in git's sight")

    def _files(self, scene: Scene) -> Files:
        """Read all state files, review and resume files included; not locks, nor what was cut off."""
        own = {".gitignore"} if scene is FIRST_START else set()
        return {
            file.name: file.read_bytes()
            for file in self._stage.project.state.glob("*")
            if not is_leftover(file.name) and file.suffix != ".lock" and file.name not in own | {"filler"}
        }


@click.command()
@click.option("--quick", is_flag=True, help="One error for each write, not all five.")
def faults(*, quick: bool) -> None:
    """Make every write fail: calls say why, change nothing, and work when made again."""
    report = Report("faults: every write of every call fails once, then the next, until the call passes")
    errors = [errno.ENOSPC] if quick else [*ERRORS]
    with tempfile.TemporaryDirectory(prefix="deepwork-faults-") as folder:
        root, control = Path(folder, "project"), Path(folder, "control")
        root.mkdir()
        path = os.pathsep.join(filter(None, [str(INJECTED), os.environ.get("PYTHONPATH")]))
        stage = Stage(root, {"PYTHONPATH": path, "DEEPWORK_TORTURE": str(control)})
        results = Faults(stage, control)
        for scene in SCENES:
            results.inject(scene, errors)
        injected = results.counts["faults"]
        notes = [_limit_file_size(results, stage), *_fill_disk(results, stage)]
        stage.close()
        logged = tracebacks(root)
    report.fact("calls in different situations", results.counts["scenes"])
    report.fact("writes made to fail below the store", injected)
    for error in ERRORS:
        name = errno.errorcode[error]
        report.fact(f"  {name}, real ones included", results.counts[name])
    for note in notes:
        report.note(note)
    report.promise("errors that do not name the cause", results.unnamed)
    report.promise("files or stacks changed by a failed call", results.changed)
    report.promise("calls that did not work when made again", results.stuck)
    report.promise("tracebacks in the server's log", logged)
    report.finish()


def _limit_file_size(results: Faults, stage: Stage) -> str:
    """Forbid the server to write files over a few bytes, and allow it again."""
    pid = stage.server.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    failed = 0
    for scene in SCENES:
        for limit in (0, 1000):
            failed += results.suffer(
                scene,
                errno.EFBIG,
                f"files limited to {limit} bytes",
                lambda limit=limit: resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard)),
                lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard)),
            )
    return f"real: {failed} calls under prlimit --fsize"


def _fill_disk(results: Faults, stage: Stage) -> Iterator[str]:
    """Put the state on a small disk of its own; fill it, and make it read-only."""
    try:
        with _small_disk(stage.project.state) as disk:
            yield f"real: {_on_full_disk(results, disk)} calls on a full tmpfs"
            yield f"real: {_on_read_only_disk(results, disk)} calls on a read-only tmpfs"
    except (OSError, subprocess.CalledProcessError) as error:
        yield f"SKIPPED: full and read-only tmpfs; this machine does not let us mount one ({error})"


@contextmanager
def _small_disk(place: Path) -> Iterator[Path]:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(place)], check=True, capture_output=True
    )
    try:
        (place / ".gitignore").write_text("*\n")
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _on_full_disk(results: Faults, disk: Path) -> int:
    filler = disk / "filler"

    def fill(pages: int) -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                file.truncate(max(0, file.tell() // 4096 - pages) * 4096)

    failed = 0
    for scene in SCENES:
        if scene is FIRST_START:
            continue  # the disk would have to go too
        for pages in range(8):
            failed += results.suffer(
                scene, errno.ENOSPC, f"{pages} pages left", lambda pages=pages: fill(pages), filler.unlink
            )
    return failed


def _on_read_only_disk(results: Faults, disk: Path) -> int:
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True, capture_output=True)

    scenes = [scene for scene in SCENES if scene is not FIRST_START]
    return sum(
        results.suffer(scene, errno.EROFS, "read-only", lambda: remount("ro"), lambda: remount("rw"))
        for scene in scenes
    )
