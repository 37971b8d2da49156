"""What is compared of folders that are too large, and the comparison of random work with the truth."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from deepwork.api import Git
from deepwork_tracking import snapshots
from deepwork_tracking.changes import changes_since
from deepwork_tracking.listing import files_below
from deepwork_tracking.snapshots import take_snapshot

sys.path.insert(0, str(Path(__file__).parent))
from random_changes import difference

pytestmark = pytest.mark.anyio

OPEN = partial(Git.open, environment=os.environ)


async def test_only_the_first_files_are_compared_where_there_are_too_many(folder, monkeypatch):
    monkeypatch.setattr(snapshots, "MAX_FILES", 3)
    for name in ("a", "c", "e", "g"):
        folder.write(name)
    snapshot = await take_snapshot(folder.root, "here", OPEN)
    assert snapshot.warnings[0].startswith("1 file(s) were not compared, because there are more than 3 files")
    for name in ("b", "e", "f", "g"):
        folder.write(name, "changed\n")
    changes = await changes_since(snapshot, OPEN)
    assert (changes.added, changes.modified, changes.deleted) == (("b",), ("e",), ())
    assert changes.warnings == snapshot.warnings


async def test_a_file_that_is_too_large_is_left_out_and_this_is_said(folder, monkeypatch):
    with (folder.root / "large").open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    folder.write("small")
    snapshot = await take_snapshot(folder.root, "here", OPEN)
    assert "1 file(s) were not compared" in snapshot.warnings[0]
    folder.write("small", "changed\n")
    changes = await changes_since(snapshot, OPEN)
    assert (changes.added, changes.modified, changes.deleted) == ((), ("small",), ())


async def test_a_large_file_that_was_dirty_before_counts_as_changed(repo):
    with (repo.root / "large").open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    snapshot = await take_snapshot(repo.root, "here", OPEN)
    changes = await changes_since(snapshot, OPEN)
    assert changes.modified == changes.dirty_before == ("large",)
    assert "1 file(s) were not compared" in changes.warnings[0]


@pytest.mark.parametrize("number", range(12))
def test_random_work_is_charged_as_a_comparison_of_trees_says(tmp_path, number):
    assert difference(tmp_path / "project", number) is None


RULES = [
    "*.o",
    "!keep.o",
    "/top",
    "dir/",
    "a/**/z",
    "**/deep.txt",
    "x[0-9].txt",
    "!x5.txt",
    "# comment",
    "\\#file",
    "trailing ",
    "sub/inner/*",
    "!sub/inner/yes",
]
PATHS = [
    *("a.o", "keep.o", "top", "n/top", "dir/f", "n/dir/f", "dir2", "a/z", "a/b/c/z", "b/deep.txt", "x1.txt", "x5.txt"),
    *("x10.txt", "#file", "trailing", "sub/inner/no", "sub/inner/yes", "sub/b.o", "sub/keep.o", "sub/more/c.tmp"),
]


def test_ignore_rules_without_git_are_those_of_git(folder):
    folder.write(".gitignore", "\n".join(RULES))
    folder.write("sub/.gitignore", "!b.o\n*.tmp\n")
    folder.write("sub/more/.gitignore", "!c.tmp\n")
    for path in PATHS:
        folder.write(path)
    without_git = sorted(files_below(folder.root))
    folder.init()
    with_git = folder.git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    assert without_git == sorted(filter(None, with_git))
