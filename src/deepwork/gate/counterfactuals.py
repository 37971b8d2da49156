"""Counterfactuals: the work as it would be if something were wrong with it, in folders of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from deepwork.gate.mutants import MAX_BYTES, mutants
from deepwork.gate.snapshot import copy_name
from deepwork.models.outputs import ListedFile
from deepwork.paths.private_folders import private_folder

# What stands for a file that is not there.
Content = bytes | None
# Programs that compare times compare whole seconds.
_LATER = 2


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


def mutations(files: Mapping[str, bytes], random: Random) -> Iterator[Counterfactual]:
    """Yield the work with a fault in every file that can have one, until no file has another."""
    of_file = {path: mutants(path, content, random) for path, content in files.items()}
    while True:
        found = {path: mutant for path, one in of_file.items() if (mutant := next(one, None))}
        if not found:
            return
        path, first = next(iter(found.items()))
        more = f" and in {len(found) - 1} more" if len(found) > 1 else ""
        contents = {path: mutant.content for path, mutant in found.items()}
        yield Counterfactual(f"mutant: {first.kind} of {path}{more}", contents)


@dataclass(frozen=True)
class Broken:
    """A counterfactual on disk.

    Attributes:
        root: A copy of the judged files with its changes, as a reviewer in the copy sees them.
        changes: The folder of changes for `run_program(seen=…)`.
    """

    root: Path
    changes: Path

    def listed(self, files: Iterable[ListedFile]) -> list[ListedFile]:
        """Return files by the paths of their copies."""
        return [ListedFile(copy_name(path), output) for path, output in files]


@contextmanager
def written(
    counterfactual: Counterfactual, copies: Path, paths: Sequence[str], *, number: int, in_project: bool
) -> Iterator[Broken]:
    """Write a counterfactual to a private folder, which is removed with the block.

    Args:
        counterfactual: What is broken.
        copies: The honest copies.
        paths: All judged files.
        number: Different for each of one proof: so are the times of its files, in whole seconds.
        in_project: Whether the reviewer works in the project: then the files are changed there, for its eyes alone.

    Raises:
        OSError: It cannot be written.
    """
    with private_folder() as folder:
        root, files = folder / "copy", folder / "files"
        (folder / "mount").mkdir(mode=0o700)
        shutil.copytree(copies, root, symlinks=True)
        files.mkdir(mode=0o700)
        absent: list[str] = []
        for path in paths:
            copy = root / copy_name(path)
            content = counterfactual.contents.get(path, b"") if path in counterfactual.contents else _read(copy)
            if content is None:
                copy.unlink(missing_ok=True)
                absent.append(path)
                continue
            _write(copy, content, number)
            if in_project and not os.path.isabs(path):
                _write(files / path, content, number)
        listed = [path for path in absent if in_project and not os.path.isabs(path)]
        (folder / "missing").write_bytes(b"\n".join(map(os.fsencode, listed)))
        yield Broken(root, folder)


def contents_of(copies: Path, paths: Iterable[str]) -> dict[str, bytes]:
    """Return what the copies of judged files hold, for mutants; of large files nothing."""
    found = {path: copies / copy_name(path) for path in paths}
    return {
        path: (_read(file) or b"") if file.is_file() and file.stat().st_size <= MAX_BYTES else b""
        for path, file in found.items()
    }


def _read(file: Path) -> Content:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _write(file: Path, content: bytes, number: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = file.stat().st_mtime if file.exists() else None
    file.unlink(missing_ok=True)
    file.write_bytes(content)
    file.chmod(0o600)
    status = file.stat()
    moment = int(before or status.st_mtime) - _LATER * (number + 1)
    os.utime(file, (moment, moment))
