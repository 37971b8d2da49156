"""Random work in a repository, and how the files charged to a task differ from a comparison of whole trees.

Each script works in a repository of its own: it commits, leaves the working tree dirty, lets a task begin, and then
edits, creates, deletes, renames, links, changes modes, stages, commits, amends and switches branches at random.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from deepwork.api import Git
from deepwork_tracking.changes import changes_since
from deepwork_tracking.snapshots import take_snapshot

OPEN = partial(Git.open, environment=os.environ)
NAMES = ("a.py", "b.txt", "src/a.py", "src/deep/c.md", "two words.md", "naïve.py", 'quo"te', "tab\there", "line\nend")
STEPS = 12

Tree = dict[str, tuple[int, bytes]]


class Script:
    """One random script in one repository; the number decides all."""

    def __init__(self, root: Path, number: int) -> None:
        self.root = root
        self.done: list[str] = []
        self._random = random.Random(number)
        self._names = self._random.sample(NAMES, 6)

    def prepare(self, *, dirty: bool) -> None:
        """Make the repository in which the task begins."""
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        for name in self._names[:4]:
            self._write(name)
        self._commit()
        if dirty:
            self.run(5)

    def run(self, steps: int = STEPS) -> None:
        """Do so many random things."""
        actions: list[Callable[[], None]] = [
            *(self._edit, self._edit, self._edit, self._create, self._delete, self._rename, self._mode, self._link),
            *(self._stage, self._commit, self._amend, self._switch, self._unstage, self._take_back, self._folder),
        ]
        for _ in range(steps):
            action = self._random.choice(actions)
            self.done.append(action.__name__)
            action()

    def tree(self) -> Tree:
        """Read all files that git sees: their modes and contents."""
        output = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        tree: Tree = {}
        for name in {os.fsdecode(path) for path in output.split(b"\0")[:-1]}:
            path = self.root / name
            if path.is_symlink():
                tree[name] = (0o120000, os.fsencode(os.readlink(path)))
            elif path.is_file() and not any(parent.is_symlink() for parent in path.parents):
                tree[name] = (0o100000 | path.stat().st_mode & 0o100, path.read_bytes())
        return tree

    def git(self, *arguments: str) -> bytes:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0", *arguments]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True).stdout

    def _try_git(self, *arguments: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
        subprocess.run(command, cwd=self.root, check=False, capture_output=True)

    def _write(self, name: str) -> None:
        path = self.root / name
        if path.is_symlink():
            path.unlink()
        if not path.parent.is_dir() or path.is_dir():
            return
        # Few contents of equal length, so that files become what they were, and git cannot tell by their sizes.
        path.write_text(f"{self._random.choice('abc')}\n" * 3)

    def _any_file(self) -> Path | None:
        files = [self.root / name for name in self.tree()]
        return self._random.choice(sorted(files)) if files else None

    def _edit(self) -> None:
        self._write(self._random.choice(self._names))

    def _create(self) -> None:
        name = self._random.choice(self._names)
        parent = (self.root / name).parent
        if not any(part.is_symlink() or part.is_file() for part in (parent, *parent.parents)):
            parent.mkdir(parents=True, exist_ok=True)
        self._write(name)

    def _delete(self) -> None:
        if file := self._any_file():
            file.unlink()

    def _rename(self) -> None:
        if file := self._any_file():
            target = self.root / self._random.choice(self._names)
            if target.parent.is_dir() and not target.is_dir():
                file.rename(target)

    def _mode(self) -> None:
        if (file := self._any_file()) and not file.is_symlink():
            file.chmod(file.stat().st_mode ^ 0o111)

    def _link(self) -> None:
        name = self._random.choice(self._names)
        path = self.root / name
        if path.parent.is_dir() and not path.is_dir():
            path.unlink(missing_ok=True)
            path.symlink_to(self._random.choice(["a.py", "nowhere", "src"]))

    def _folder(self) -> None:
        """Put a folder where a file was."""
        if (file := self._any_file()) and not file.is_symlink():
            content = file.read_bytes()
            file.unlink()
            file.mkdir()
            (file / "inner").write_bytes(content)

    def _stage(self) -> None:
        self._try_git("add", self._random.choice(["-A", "-u", "."]))

    def _unstage(self) -> None:
        self._try_git(*self._random.choice([("reset", "-q"), ("rm", "-q", "--cached", "-r", ".")]))

    def _commit(self) -> None:
        self._try_git("add", "-A")
        self._try_git("commit", "-q", "--allow-empty", "-m", "work")

    def _amend(self) -> None:
        self._try_git("commit", "-q", "--amend", "--allow-empty", "-m", "amended")

    def _switch(self) -> None:
        self._try_git("checkout", "-q", *self._random.choice([("-B", "other"), ("--detach",), ("main",)]))

    def _take_back(self) -> None:
        self._try_git(*self._random.choice([("checkout", "-q", "--", "."), ("reset", "-q", "--hard", "HEAD~1")]))


def brute_force(before: Tree, after: Tree) -> tuple[list[str], list[str], list[str]]:
    """Compare two trees file by file: what was added, modified, deleted."""
    modified = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    return sorted(after.keys() - before.keys()), sorted(modified), sorted(before.keys() - after.keys())


def difference(root: Path, number: int) -> str | None:
    """Run one script; return how the files charged to the task differ from the truth, or None if they do not."""
    script = Script(root, number)
    script.prepare(dirty=number % 2 == 1)
    before = script.tree()
    snapshot = anyio.run(take_snapshot, root, "here", OPEN)
    script.done.append("| task begins |")
    script.run()
    changes = anyio.run(changes_since, snapshot, OPEN)
    truth = brute_force(before, script.tree())
    charged = (list(changes.added), list(changes.modified), list(changes.deleted))
    if charged == truth:
        return None
    return f"script {number} ({' '.join(script.done)}):\n  charged {charged}\n  truth   {truth}"
