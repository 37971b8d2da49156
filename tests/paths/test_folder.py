"""Files that are written so that a reader, a full disk or a cut sees the old content or the new."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from deepwork.errors import PathRefused, StorageError
from deepwork.paths.folder import LEFTOVER_SECONDS, Folder, is_leftover


def test_a_written_file_is_private_whatever_the_umask(root, folder, mode):
    old = os.umask(0)
    try:
        folder.replace("new.md", b"new")
        folder.subfolder("new").close()
    finally:
        os.umask(old)
    assert (root / "new.md").read_bytes() == b"new"
    assert mode(root / "new.md") == 0o600
    assert mode(root / "new") == 0o700


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_is_replaced_and_a_reader_keeps_the_old_one(root, folder, synced):
    (root / "file.md").write_text("old")
    names = folder.names()
    with (root / "file.md").open() as reader:
        folder.replace("file.md", b"new", synced=synced)
        assert reader.read() == "old"
    assert (root / "file.md").read_text() == "new"
    assert folder.names() == names


def test_a_file_of_a_long_name_is_written(folder):
    name = "x" * 255
    folder.replace(name, b"new")
    assert folder.read(name) == b"new"


def test_readers_see_the_old_or_the_new_content_and_nothing_between(root, folder):
    """100,000 bytes take several writes; a file that is truncated and written in place would be seen half."""
    file = root / "file"
    contents = [bytes([letter]) * 100_000 for letter in b"ab"]
    file.write_bytes(contents[0])
    stop = threading.Event()
    contents_read = set()

    def read():
        while not stop.is_set():
            contents_read.add(file.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(100):
        folder.replace("file", contents[number % 2])
    stop.set()
    reader.join()
    assert contents_read <= set(contents)


def test_a_link_in_the_place_of_the_file_is_not_followed(root, folder, outside):
    (root / "link.md").symlink_to(outside / "file.md")
    with pytest.raises(OSError, match="symbolic links"):
        folder.replace("link.md", b"new")
    assert (root / "link.md").is_symlink()
    folder.replace("link.md", b"new", synced=False)
    assert (root / "link.md").read_text() == "new"
    assert (outside / "file.md").read_text() == "secret"


# A write that the kernel refuses in the middle: no file of this process may grow beyond 4,096 bytes.
WRITE_TOO_MUCH = """
import resource, sys
from pathlib import Path
from deepwork.paths.folder import Folder
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
root = Path(sys.argv[1])
try:
    with Folder.open(root / "sub", inside=root) as folder:
        folder.replace("file.md", b"x" * 100_000)
except OSError as error:
    print(error.strerror)
"""


def test_a_write_that_fails_in_the_middle_leaves_the_old_file_and_nothing_beside_it(root):
    process = subprocess.run([sys.executable, "-c", WRITE_TOO_MUCH, root], capture_output=True, text=True, check=True)
    assert process.stdout == "File too large\n"
    assert os.listdir(root / "sub") == ["file.md"]
    assert (root / "sub" / "file.md").read_text() == "inside"


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mount.returncode:
        pytest.skip("a full disk needs the right to mount one")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it_and_the_next_write_works(tiny_disk):
    with Folder.open(tiny_disk, inside=tiny_disk) as disk:
        disk.replace("file", b"old")
        with pytest.raises(OSError, match="No space left on device"):
            disk.replace("file", b"x" * 100_000)
        assert disk.names() == ["file"]
        assert disk.read("file") == b"old"
        disk.replace("file", b"new")
        assert disk.read("file") == b"new"


def test_what_a_cut_off_write_leaves_is_known_as_such():
    assert is_leftover(".session_1.json.0123456789abcdef.tmp")
    assert not any(map(is_leftover, ("session_1.json", ".gitignore", "session_1.json.tmp", "sessions.3.lock")))


def test_only_what_a_cut_off_write_left_an_hour_ago_is_removed(root, folder):
    old, new = (f".file.md.{digit * 16}.tmp" for digit in "01")
    for name in (old, new, "file.md"):
        (root / name).touch()
        os.utime(root / name, (time.time() - LEFTOVER_SECONDS - 1,) * 2)
    os.utime(root / new)
    assert folder.remove_leftovers() == 1
    assert folder.names() == [new, "file.md", "sub"]


def refuse_to_sync(folder):
    """Let the sync of a folder fail, as a dying disk does."""
    real = os.fsync

    def sync(descriptor):
        if descriptor == folder.descriptor:
            raise OSError(5, "Input/output error")
        real(descriptor)

    return sync


@pytest.mark.parametrize("content", [None, b"", b"old"])
def test_if_the_folder_cannot_be_synced_the_previous_content_is_put_back(folder, monkeypatch, content):
    if content is not None:
        folder.replace("file.md", content)
    monkeypatch.setattr(os, "fsync", refuse_to_sync(folder))
    with pytest.raises(OSError, match="Input/output error"):
        folder.replace("file.md", b"new")
    assert folder.read("file.md") == content


def test_what_can_neither_be_synced_nor_put_back_is_named(folder, monkeypatch):
    def refuse(*_arguments, **_options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse_to_sync(folder))
    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(StorageError) as error:
        folder.replace("file.md", b"new")
    assert error.value.message == (
        "file.md was written, but could neither be synced (Input/output error) nor put back (Read-only file system)"
    )
    assert error.value.hint == "A power cut may undo it. Fix the cause, then call again."


def test_reading_follows_no_link_and_a_missing_file_is_none(root, folder, outside):
    (root / "link.md").symlink_to(outside / "file.md")
    assert folder.read("nothing") is None
    with pytest.raises(OSError, match="symbolic links"):
        folder.read("link.md")


def test_reading_a_folder_is_refused_and_leaves_no_descriptor_open(folder):
    before = os.listdir("/proc/self/fd")
    with pytest.raises(IsADirectoryError):
        folder.read("sub")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_file_is_moved_into_another_folder(root, folder):
    folder.replace("new.md", b"new")
    with folder.subfolder("sub") as sub:
        folder.rename("new.md", "moved.md", into=sub)
        assert sub.names() == ["file.md", "moved.md"]
    assert folder.names() == ["sub"]


def test_a_link_is_not_a_subfolder(root, folder, outside):
    (root / "out").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        folder.subfolder("out")


def test_a_folder_is_opened_only_inside(root, outside):
    (root / "out").symlink_to(outside)
    with pytest.raises(PathRefused) as error:
        Folder.open(root / "out", inside=root)
    assert error.value.message == "the folder 'out' lies outside of the project"
    with pytest.raises(PathRefused, match="lies outside of the project"):
        Folder.open(outside, inside=root)


def test_a_file_is_not_a_folder(root):
    with pytest.raises(PathRefused) as error:
        Folder.open(root / "sub" / "file.md", inside=root)
    assert error.value.message == "'sub/file.md' is not a folder"


def test_a_missing_folder_is_missing_and_is_made_only_on_demand(root):
    with pytest.raises(FileNotFoundError):
        Folder.open(root / "new" / "below", inside=root)
    assert not (root / "new").exists()
    with Folder.open(root / "new" / "below", inside=root, create=True) as folder:
        assert folder.names() == []


def test_an_open_folder_is_the_same_after_it_was_moved(root):
    with Folder.open(root / "sub", inside=root) as folder:
        (root / "sub").rename(root / "moved")
        folder.replace("new.md", b"new")
    assert (root / "moved" / "new.md").read_text() == "new"
