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
from deepwork.files.durable import is_leftover, read_in, replace_in, write_durably
from deepwork.files.locks import LOCK_SECONDS, locked
from deepwork.files.paths import open_folder, open_regular, read_regular, resolve_inside
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
    ("given", "why"),
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
def test_what_is_no_path_of_the_project_is_refused_with_the_reason(root, given, why):
    with pytest.raises(PathRefused) as error:
        resolve_inside(given, [root])
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
    for given in ("out.md", "out/file.md", "chain.md"):
        with pytest.raises(PathRefused, match="lies outside of the project"):
            read_regular(given, [root], limit=100)


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


@pytest.mark.parametrize("given", [".", "sub/.."])
def test_the_root_itself_is_no_file(root, given):
    with pytest.raises(PathRefused, match="is a folder, not a regular file"):
        read_regular(given, [root], limit=100)


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

    seen = set()
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            try:
                seen.add(read_regular("sub/file.md", [root], limit=100))
            except (PathRefused, FileNotFoundError) as error:
                seen.add(type(error))
    finally:
        stop.set()
        swapper.join()
    assert b"inside" in seen
    assert PathRefused in seen
    assert b"secret" not in seen


def test_a_written_file_is_private_whatever_the_umask(root):
    old = os.umask(0)
    try:
        write_durably(root / "new.md", b"new", inside=root)
    finally:
        os.umask(old)
    assert (root / "new.md").read_bytes() == b"new"
    assert mode(root / "new.md") == 0o600


def test_a_file_is_replaced_and_a_reader_keeps_the_old_one(root):
    file = root / "sub" / "file.md"
    with file.open() as reader:
        write_durably(file, b"new", inside=root)
        assert reader.read() == "inside"
    assert file.read_text() == "new"
    assert os.listdir(root / "sub") == ["file.md"]


def test_readers_see_the_old_or_the_new_content_and_nothing_between(root):
    """100,000 bytes take several writes; a file that is truncated and written in place would be seen half."""
    file = root / "file"
    contents = [bytes([letter]) * 100_000 for letter in b"ab"]
    file.write_bytes(contents[0])
    stop = threading.Event()
    seen = set()

    def read():
        while not stop.is_set():
            seen.add(file.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(100):
        write_durably(file, contents[number % 2], inside=root)
    stop.set()
    reader.join()
    assert seen <= set(contents)


def test_nothing_is_written_outside(root, outside):
    (root / "out").symlink_to(outside)
    for path in (root / "out" / "new.md", outside / "new.md"):
        with pytest.raises(PathRefused, match="lies outside of the project"):
            write_durably(path, b"new", inside=root)
    assert os.listdir(outside) == ["file.md"]


def test_a_link_in_the_place_of_the_file_is_not_followed(root, outside):
    (root / "link.md").symlink_to(outside / "file.md")
    with pytest.raises(OSError, match="symbolic links"):
        write_durably(root / "link.md", b"new", inside=root)
    assert (outside / "file.md").read_text() == "secret"


def test_writing_into_a_missing_folder_makes_none(root):
    with pytest.raises(FileNotFoundError):
        write_durably(root / "nowhere" / "new.md", b"new", inside=root)
    assert not (root / "nowhere").exists()


# A write that the kernel refuses in the middle: no file of this process may grow beyond 4,096 bytes.
WRITE_TOO_MUCH = """
import resource, sys
from pathlib import Path
from deepwork.files.durable import write_durably
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
root = Path(sys.argv[1])
try:
    write_durably(root / "sub" / "file.md", b"x" * 100_000, inside=root)
except OSError as error:
    print(error.strerror)
"""


def test_a_write_that_fails_in_the_middle_leaves_the_old_file_and_nothing_beside_it(root):
    done = subprocess.run([sys.executable, "-c", WRITE_TOO_MUCH, root], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
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
    write_durably(tiny_disk / "file", b"old", inside=tiny_disk)
    with pytest.raises(OSError, match="No space left on device"):
        write_durably(tiny_disk / "file", b"x" * 100_000, inside=tiny_disk)
    assert os.listdir(tiny_disk) == ["file"]
    assert (tiny_disk / "file").read_text() == "old"
    write_durably(tiny_disk / "file", b"new", inside=tiny_disk)
    assert (tiny_disk / "file").read_text() == "new"


def test_what_a_cut_off_write_leaves_is_known_as_such():
    assert is_leftover(".session_1.json.0123456789abcdef.tmp")
    assert not any(map(is_leftover, ("session_1.json", ".gitignore", "session_1.json.tmp", "sessions.3.lock")))


def test_reading_in_a_folder_follows_no_link_and_knows_nothing_of_what_is_not_there(root, outside):
    (root / "link.md").symlink_to(outside / "file.md")
    with open_folder(root, inside=root) as folder:
        assert read_in(folder, "nothing") is None
        with pytest.raises(OSError, match="symbolic links"):
            read_in(folder, "link.md")


def test_a_folder_is_opened_only_inside(root, outside):
    (root / "out").symlink_to(outside)
    with pytest.raises(PathRefused) as error, open_folder(root / "out", inside=root):
        pass
    assert error.value.message == "the folder 'out' lies outside of the project"


def test_a_file_is_no_folder(root):
    with pytest.raises(PathRefused) as error, open_folder(root / "sub" / "file.md", inside=root):
        pass
    assert error.value.message == "'sub/file.md' is not a folder"


def test_a_missing_folder_is_missing_and_not_made(root):
    with pytest.raises(FileNotFoundError), open_folder(root / "nowhere", inside=root):
        pass
    assert not (root / "nowhere").exists()


def test_an_open_folder_is_the_same_after_it_was_moved(root):
    with open_folder(root / "sub", inside=root) as folder:
        (root / "sub").rename(root / "moved")
        replace_in(folder, "new.md", b"new", previous=None)
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


def test_the_gitignore_of_the_user_is_kept(root):
    (root / ".deepwork" / "tmp").mkdir(parents=True)
    (root / ".deepwork" / "tmp" / ".gitignore").write_text("mine\n")
    Workspace(root).prepare_state_dir()
    assert (root / ".deepwork" / "tmp" / ".gitignore").read_text() == "mine\n"


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
from deepwork.files.locks import locked
with locked(os.open(sys.argv[1], os.O_RDONLY), "lock", subject="the folder"):
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


@pytest.fixture
def folder(root):
    with open_folder(root, inside=root) as folder:
        yield folder


def test_a_lock_keeps_others_out_until_it_is_given_back(folder):
    with locked(folder, "lock", subject="the folder"):
        with pytest.raises(StorageError), locked(folder, "lock", subject="the folder", seconds=0.05):
            pass
        with locked(folder, "another", subject="the folder", seconds=0.05):
            pass
    with locked(folder, "lock", subject="the folder", seconds=0):
        pass


def test_the_lock_file_is_private_and_no_link_is_followed(root, folder, outside):
    with locked(folder, "lock", subject="the folder"):
        assert mode(root / "lock") == 0o600
    (root / "link").symlink_to(outside / "lock")
    with pytest.raises(OSError, match="symbolic links"), locked(folder, "link", subject="the folder"):
        pass
    assert os.listdir(outside) == ["file.md"]


def test_a_lock_is_freed_when_its_holder_is_killed(folder, hold):
    holder = hold()
    with pytest.raises(StorageError), locked(folder, "lock", subject="the folder", seconds=0.05):
        pass
    holder.kill()
    with locked(folder, "lock", subject="the folder", seconds=2):
        pass


def test_the_one_slow_test_a_stopped_holder_makes_others_fail_clearly_within_5_s(folder, hold):
    holder = hold("stop")
    began = time.monotonic()
    with pytest.raises(StorageError) as error, locked(folder, "lock", subject="the folder"):
        pass
    assert LOCK_SECONDS <= time.monotonic() - began < 5
    assert error.value.message == (
        f"another process has held the lock of the folder for {LOCK_SECONDS:g} s; nothing was changed"
    )
    assert error.value.hint == "Call again; if it stays so, look for a suspended deepwork process."
    holder.send_signal(signal.SIGCONT)
