"""Paths that somebody else chose, writes that survive, locks that are freed: on real files and with real processes."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deepwork.errors import PathRefused, StorageError
from deepwork.files.folder import LEFTOVER_SECONDS, Folder, is_leftover
from deepwork.files.locks import LOCK_SECONDS
from deepwork.files.paths import open_regular, read_regular, resolve_inside
from deepwork.files.workspace import Workspace


@pytest.fixture
def root(tmp_path):
    """A project with a file, and something secret beside it."""
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file.md").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.md").write_text("secret")
    return root


@pytest.fixture
def outside(root):
    return root.parent / "outside"


@pytest.fixture
def folder(root):
    with Folder.open(root, inside=root) as folder:
        yield folder


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_relative_path_starts_at_the_first_root(root, outside):
    assert resolve_inside("sub/file.md", [root, outside]) == (root / "sub" / "file.md", root)


def test_an_absolute_path_may_lie_in_any_root(root, outside):
    assert resolve_inside(str(outside / "file.md"), [root, outside]) == (outside / "file.md", outside)


def test_a_path_that_leaves_and_comes_back_is_inside(root):
    assert resolve_inside("../project/sub/./file.md", [root])[0] == root / "sub" / "file.md"


def test_a_root_that_is_a_link_is_resolved_first(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    assert resolve_inside("sub/file.md", [tmp_path / "link"]) == (root / "sub" / "file.md", root)


def test_a_sibling_that_begins_with_the_same_name_is_outside(root):
    (root.parent / "project-two").mkdir()
    with pytest.raises(PathRefused, match="lies outside of the project"):
        resolve_inside("../project-two", [root])


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is empty"),
        ("..", "lies outside of the project"),
        ("../outside/file.md", "lies outside of the project"),
        ("/etc/hostname", "lies outside of the project"),
        ("sub/../../outside", "lies outside of the project"),
        ("a\0b", "is not a path of this system"),
        ("C:\\windows", "is not a path of this system"),
        ("\\\\host\\share", "is not a path of this system"),
        ("//host/share", "is not a path of this system"),
        ("x" * 4097, "is longer than 4,096 bytes"),
        ("é" * 2049, "is longer than 4,096 bytes"),
        ("\ud800", "is not a path of this system"),
    ],
)
def test_what_is_no_path_of_the_project_is_refused_with_the_reason(root, path, why):
    with pytest.raises(PathRefused) as error:
        resolve_inside(path, [root])
    assert error.value.message == why


def test_the_refusal_names_the_allowed_roots_where_there_are_some(root, outside):
    with pytest.raises(PathRefused, match="lies outside of the project and the allowed roots"):
        resolve_inside("/etc/hostname", [root, outside])


def test_links_are_followed_as_long_as_they_stay_inside(root, outside):
    (root / "in.md").symlink_to("sub/file.md")
    (root / "out.md").symlink_to(outside / "file.md")
    (root / "out").symlink_to(outside)
    (root / "chain.md").symlink_to("out.md")
    assert read_regular("in.md", [root], limit=100) == b"inside"
    for path in ("out.md", "out/file.md", "chain.md"):
        with pytest.raises(PathRefused, match="lies outside of the project"):
            read_regular(path, [root], limit=100)


def test_the_descriptor_and_the_path_are_of_one_file(root):
    with open_regular("sub/file.md", [root]) as (path, descriptor):
        (root / "sub").rename(root / "moved")
        assert path == root / "sub" / "file.md"
        assert os.pread(descriptor, 100, 0) == b"inside"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkdir, "is a folder, not a regular file"),
        (os.mkfifo, "is a pipe, not a regular file"),
        (lambda path: path.symlink_to(path), "was swapped for a link while it was opened"),
        (lambda path: path.symlink_to("."), "is a folder, not a regular file"),
    ],
    ids=["folder", "pipe", "loop of links", "link to the root"],
)
def test_only_regular_files_are_read_and_nothing_waits(root, make, why):
    make(root / "it")
    with pytest.raises(PathRefused) as error:
        read_regular("it", [root], limit=100)
    assert error.value.message == why


def test_a_socket_is_not_read(root, monkeypatch):
    monkeypatch.chdir(root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("it")
        with pytest.raises(PathRefused, match="not a regular file"):
            read_regular("it", [root], limit=100)


def test_a_device_is_not_read():
    with pytest.raises(PathRefused) as error:
        read_regular("null", [Path("/dev")], limit=100)
    assert error.value.message == "is a device, not a regular file"


@pytest.mark.parametrize("path", [".", "sub/.."])
def test_the_root_itself_is_no_file(root, path):
    with pytest.raises(PathRefused, match="is a folder, not a regular file"):
        read_regular(path, [root], limit=100)


def test_a_file_below_a_file_is_refused(root):
    with pytest.raises(PathRefused) as error:
        read_regular("sub/file.md/more", [root], limit=100)
    assert error.value.message == "lies in something that is not a folder"


def test_a_missing_file_is_missing(root):
    with pytest.raises(FileNotFoundError):
        read_regular("nothing.md", [root], limit=100)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(root):
    (root / "sub" / "file.md").chmod(0)
    with pytest.raises(PathRefused, match="cannot be read: Permission denied"):
        read_regular("sub/file.md", [root], limit=100)


def test_a_file_is_read_up_to_its_limit_and_no_byte_further(root):
    assert read_regular("sub/file.md", [root], limit=6) == b"inside"
    with pytest.raises(PathRefused, match="is larger than 5 bytes"):
        read_regular("sub/file.md", [root], limit=5)


def test_a_folder_that_is_swapped_for_a_link_all_the_time_never_lets_anything_outside_be_read(root, outside):
    """Somebody else swaps `sub` while it is read: whatever happens, it is never the secret."""
    (root / "link").symlink_to(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for new, old in (("sub", "real"), ("link", "sub"), ("sub", "link"), ("real", "sub")):
                os.rename(root / new, root / old)

    contents_read = set()
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            try:
                contents_read.add(read_regular("sub/file.md", [root], limit=100))
            except (PathRefused, FileNotFoundError) as error:
                contents_read.add(type(error))
    finally:
        stop.set()
        swapper.join()
    assert b"inside" in contents_read
    assert PathRefused in contents_read
    assert b"secret" not in contents_read


def test_a_written_file_is_private_whatever_the_umask(root, folder):
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
from deepwork.files.folder import Folder
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


@pytest.mark.parametrize("content", [None, b"old"])
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


def test_the_state_folder_is_private_and_keeps_itself_out_of_git(root):
    Workspace(root).prepare_state_dir()
    assert mode(root / ".deepwork" / "tmp") == 0o700
    assert (root / ".deepwork" / "tmp" / ".gitignore").read_text() == "*\n"
    assert mode(root / ".deepwork" / "tmp" / ".gitignore") == 0o600


def test_a_state_folder_that_was_open_to_others_is_made_private(root):
    (root / ".deepwork" / "tmp").mkdir(parents=True, mode=0o755)
    Workspace(root).prepare_state_dir()
    assert mode(root / ".deepwork" / "tmp") == 0o700


def test_a_gitignore_that_would_let_sessions_into_a_commit_is_replaced(root):
    (root / ".deepwork" / "tmp").mkdir(parents=True)
    (root / ".deepwork" / "tmp" / ".gitignore").write_text("!*\n")
    Workspace(root).prepare_state_dir()
    assert (root / ".deepwork" / "tmp" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("link", [".deepwork", ".deepwork/tmp"])
def test_a_state_folder_that_is_a_link_out_of_the_project_is_refused_and_nothing_is_made_there(root, outside, link):
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(outside)
    with pytest.raises(PathRefused) as error:
        Workspace(root).prepare_state_dir()
    assert error.value.message == "the folder '.deepwork/tmp' lies outside of the project"
    assert os.listdir(outside) == ["file.md"]


def test_a_state_folder_that_is_a_link_inside_of_the_project_is_used(root):
    (root / ".deepwork").mkdir()
    (root / ".deepwork" / "tmp").symlink_to("../sub")
    Workspace(root).prepare_state_dir()
    assert (root / "sub" / ".gitignore").exists()


def test_paths_are_shown_relative_to_the_project_where_they_lie_in_it(root, outside):
    workspace = Workspace(root, (outside,))
    assert workspace.shown(root / "sub" / "file.md") == "sub/file.md"
    assert workspace.shown(outside / "file.md") == str(outside / "file.md")
    assert workspace.output_roots == (root, outside)


HOLD = """
import os, signal, sys, time
from deepwork.files.folder import Folder
with Folder(os.open(sys.argv[1], os.O_RDONLY)).locked("lock", subject="the folder"):
    print("held", flush=True)
    if sys.argv[2] == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)
"""


@pytest.fixture
def hold(root):
    """Start a process that takes the lock and keeps it."""
    started = []

    def hold(how="sleep"):
        process = subprocess.Popen([sys.executable, "-c", HOLD, root, how], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


def test_a_lock_keeps_others_out_until_it_is_given_back(folder):
    with folder.locked("lock", subject="the folder"):
        with pytest.raises(StorageError), folder.locked("lock", subject="the folder", seconds=0.05):
            pass
        with folder.locked("another", subject="the folder", seconds=0.05):
            pass
    with folder.locked("lock", subject="the folder", seconds=0):
        pass


def test_the_lock_file_is_private_and_no_link_is_followed(root, folder, outside):
    with folder.locked("lock", subject="the folder"):
        assert mode(root / "lock") == 0o600
    (root / "link").symlink_to(outside / "lock")
    with pytest.raises(StorageError, match="symbolic links"), folder.locked("link", subject="the folder"):
        pass
    assert os.listdir(outside) == ["file.md"]


def test_a_lock_is_freed_when_its_holder_is_killed(folder, hold):
    holder = hold()
    with pytest.raises(StorageError), folder.locked("lock", subject="the folder", seconds=0.05):
        pass
    holder.kill()
    with folder.locked("lock", subject="the folder", seconds=2):
        pass


def test_the_one_slow_test_a_stopped_holder_makes_others_fail_clearly_within_5_s(folder, hold):
    holder = hold("stop")
    assert LOCK_SECONDS < 5
    started = time.monotonic()
    with pytest.raises(StorageError) as error, folder.locked("lock", subject="the folder"):
        pass
    assert time.monotonic() - started >= LOCK_SECONDS
    assert error.value.message == (
        f"another process has held the lock of the folder for {LOCK_SECONDS:g} s; nothing was changed"
    )
    assert error.value.hint == "Call again; if it stays so, look for a suspended deepwork process."
    holder.send_signal(signal.SIGCONT)
