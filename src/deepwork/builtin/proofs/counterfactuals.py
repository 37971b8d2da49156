"""Counterfactuals: the work as it would be if something were wrong with it, in folders of its own."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from deepwork.builtin.proofs.mutants import MAX_BYTES, mutants
from deepwork.paths.private_folders import private_folder
from deepwork.ports.proofs import Trial

# What stands for a file that is not there.
Content = bytes | None


@dataclass(frozen=True)
class Counterfactual:
    """One way in which the work is broken.

    Attributes:
        kind: In words: `missing`, `empty`, `sample`, or `mutant` with what is changed.
        contents: What its files hold, by their paths; nothing is changed for the control.
        is_content: Whether something is there that a gate can read: it has to look into the work to refuse it.
    """

    kind: str
    contents: Mapping[str, Content]
    is_content: bool = True

    @property
    def output(self) -> str:
        """The broken files, in one line."""
        names = [*self.contents]
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


CONTROL = Counterfactual("the work as it is", {})


def missing(paths: Iterable[str]) -> Counterfactual:
    """Return the work without its files."""
    return Counterfactual("missing", dict.fromkeys(paths), is_content=False)


def empty(paths: Iterable[str]) -> Counterfactual:
    """Return the work with empty files."""
    return Counterfactual("empty", dict.fromkeys(paths, b""), is_content=False)


def refused(files: Mapping[str, bytes], before: Mapping[str, bytes]) -> Counterfactual | None:
    """Return the work as the last refused attempt had it; None if that is not kept, or was the same."""
    contents = {path: before[path] for path, content in files.items() if before.get(path, content) != content}
    is_content = any(content.strip() for content in contents.values())
    return Counterfactual("as the last refused attempt had it", contents, is_content) if contents else None


def mutations(
    files: Mapping[str, bytes], random: Random, before: Mapping[str, bytes] | None = None
) -> Iterator[Counterfactual]:
    """Yield the work with a fault in every file that can have one, until no file has another.

    Args:
        files: What the files hold.
        random: Chooses the faults.
        before: What files held before the work on them, as far as that is known.
    """
    known = before or {}
    of_file = {path: mutants(path, content, random, known.get(path)) for path, content in files.items()}
    while True:
        found = {path: mutant for path, one in of_file.items() if (mutant := next(one, None))}
        if not found:
            return
        path, first = next(iter(found.items()))
        more = f" and in {len(found) - 1} more" if len(found) > 1 else ""
        contents = {path: mutant.content for path, mutant in found.items()}
        yield Counterfactual(f"mutant: {first.kind} of {path}{more}", contents)


def series(
    files: Iterable[str], faults: Iterator[Counterfactual], last: Counterfactual | None, *, is_known: bool
) -> Generator[Counterfactual, bool, None]:
    """Yield what a gate is asked about, and get for each whether it has refused it; one of the first three is a mutant.

    Args:
        files: The judged files.
        faults: Mutants of the work.
        last: The work as the last refused attempt had it.
        is_known: Whether the gate was seen to refuse broken work before: then it is asked first about what has to be
            read, which is one run in most cases.
    """
    without = [missing(files), empty(files)]
    if is_known and (first := last or next(faults, None)):
        yield first
        without = without[: 1 if first is last else 2]
    for one in without:
        if (yield one):
            if last and not is_known:
                yield last
            break
    yield from faults


@dataclass(frozen=True)
class Broken:
    """A counterfactual on disk.

    Attributes:
        root: A copy of the judged files with its changes, as a reviewer in the copy sees them.
        changes: The folder of changes for `run_program(seen=…)`.
    """

    root: Path
    changes: Path


@contextmanager
def written(counterfactual: Counterfactual, trial: Trial, number: int) -> Iterator[Broken]:
    """Write a counterfactual to a private folder, which is removed with the block.

    Where the reviewer works in the project, the files are changed there, for its eyes alone.

    Args:
        counterfactual: What is broken.
        trial: The reviewer and the honest work.
        number: Different for each of one proof: so are the times of its files, in whole seconds.

    Raises:
        OSError: It cannot be written.
    """
    with private_folder() as folder:
        root, files = folder / "copy", folder / "files"
        (folder / "mount").mkdir(mode=0o700)
        shutil.copytree(trial.copies, root, symlinks=True)
        files.mkdir(mode=0o700)
        absent: list[str] = []
        for path, name in trial.files.items():
            copy = root / name
            content = counterfactual.contents.get(path, b"") if path in counterfactual.contents else _read(copy)
            is_seen = trial.project is not None and not os.path.isabs(path)
            if content is None:
                copy.unlink(missing_ok=True)
                absent += [path] if is_seen else []
                continue
            _write(copy, content, _moment(trial.copies / name, number))
            if trial.project and is_seen:
                _write(files / path, content, _moment(trial.project / path, number))
        (folder / "missing").write_bytes(b"\n".join(map(os.fsencode, absent)))
        yield Broken(root, folder)


def contents_of(trial: Trial) -> dict[str, bytes]:
    """Return what the copies of judged files hold, for mutants; of large files nothing."""
    found = {path: trial.copies / name for path, name in trial.files.items()}
    return {
        path: (_read(file) or b"") if file.is_file() and file.stat().st_size <= MAX_BYTES else b""
        for path, file in found.items()
    }


def _read(file: Path) -> Content:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _moment(honest: Path, number: int) -> int:
    """Return a time in whole seconds that neither the honest file has nor another of its proof.

    It is later than what was made of the honest file, so that a build takes up what has changed.
    """
    try:
        before = honest.stat().st_mtime
    except OSError:
        before = 0.0
    return int(max(before, time.time())) + number


def _write(file: Path, content: bytes, moment: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.unlink(missing_ok=True)
    file.write_bytes(content)
    file.chmod(0o600)
    os.utime(file, (moment, moment))
