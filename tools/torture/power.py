"""The power fails under a server: a loop-mounted ext4 is shut down without a flush, as if its disk had gone."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import click
from kills import Victim, torment
from ledger import complaints
from report import Report, seed_option
from servers import AnyServer

FS_IOC_SHUTDOWN = 0x8004587D
WITHOUT_FLUSH = struct.pack("I", 2)
SIZE = 64 * 1024 * 1024
REPLAYED = 1  # what e2fsck says when all that it had to do was to replay the journal


class Disk:
    """An ext4 in a file, mounted below a folder."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk.img"
        self.place = folder / "disk"

    def __enter__(self) -> Self:
        self.place.mkdir()
        with self._image.open("wb") as file:
            file.truncate(SIZE)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        _run("umount", "--lazy", str(self.place))

    def sync(self) -> None:
        """Let everything that is there now survive."""
        _run("sync", "--file-system", str(self.place))

    def cut(self) -> None:
        """Cut the power: what was not synced is gone, and nothing can be written any more."""
        folder = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, FS_IOC_SHUTDOWN, WITHOUT_FLUSH)
        finally:
            os.close(folder)

    def restore(self) -> str:
        """Switch the power on again; return what fsck finds wrong, beyond a journal to replay."""
        _run("umount", str(self.place))
        replay = subprocess.run(["e2fsck", "-fp", str(self._image)], capture_output=True, text=True, check=False)
        check = subprocess.run(["e2fsck", "-fn", str(self._image)], capture_output=True, text=True, check=False)
        self._mount()
        if replay.returncode > REPLAYED or check.returncode:
            return replay.stdout + replay.stderr + check.stdout
        return ""

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.place))


class PowerVictim(Victim):
    """A project on a disk whose power fails. Logs are elsewhere."""

    def __init__(self, disk: Disk, seed: str, *, logs: Path) -> None:
        root = disk.place / "project"
        root.mkdir()
        super().__init__(root, seed, logs=logs)
        self._disk = disk
        disk.sync()

    def end(self, server: AnyServer) -> None:
        """Stop everything at the same moment, process and disk; then switch the power on again."""
        server.process.send_signal(signal.SIGSTOP)
        self._disk.cut()
        server.kill()
        if damage := self._disk.restore():
            self.complain("fsck", damage[:300])


@click.command()
@click.option("--count", default=200, show_default=True, help="How often to cut the power.")
@seed_option
def power(count: int, seed: int) -> None:
    """Cut the power under servers: nothing acknowledged may be lost. Needs root, on Linux."""
    report = Report(f"power: ext4 shut down without flush under servers in the middle of calls, seed {seed}")
    if reason := why_not():
        report.note(f"SKIPPED: {reason}")
        report.finish()
    victims = torment(report, "power", count, seed, _victim)
    report.promise("file systems that fsck found damaged", complaints(victims, "fsck"))
    report.finish()


def why_not() -> str:
    """Cut the power of a disk with a synced and an unsynced file; return why this machine cannot do that."""
    if os.geteuid():
        return "only root may mount a loop device"
    try:
        with tempfile.TemporaryDirectory(prefix="deepwork-power-") as folder, Disk(Path(folder)) as disk:
            (disk.place / "synced").write_text("text")
            disk.sync()
            (disk.place / "unsynced").write_text("text")
            disk.cut()
            disk.restore()
            survivors = sorted(file.name for file in disk.place.glob("*synced"))
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]} failed: {error.stderr.strip()}"
    except OSError as error:
        return f"the file system cannot be shut down: {error.strerror}"
    return "" if survivors == ["synced"] else f"a power cut has left {survivors}, not the synced file alone"


@contextmanager
def _victim(folder: Path, seed: str) -> Iterator[Victim]:
    with Disk(folder) as disk:
        yield PowerVictim(disk, seed, logs=folder)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
