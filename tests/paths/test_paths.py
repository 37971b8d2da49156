"""Paths from outside: resolved, inside of their roots, and opened without following links."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from deepwork.errors import PathRefused
from deepwork.paths.paths import open_regular, read_regular, resolve_inside


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
def test_a_path_that_is_not_in_the_project_is_refused_with_the_reason(root, path, why):
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


@pytest.mark.usefixtures("bound_by_permissions")
def test_a_file_that_may_not_be_read_is_refused(root):
    (root / "sub" / "file.md").chmod(0)
    with pytest.raises(PathRefused, match="cannot be read: Permission denied"):
        read_regular("sub/file.md", [root], limit=100)


def test_a_file_is_read_up_to_its_limit_and_no_byte_further(root):
    assert read_regular("sub/file.md", [root], limit=6) == b"inside"
    with pytest.raises(PathRefused, match="is larger than 5 bytes"):
        read_regular("sub/file.md", [root], limit=5)


def test_a_folder_that_is_swapped_for_a_link_all_the_time_never_lets_anything_outside_be_read(root, outside):
    """An attacker swaps `sub` while it is read: the secret is never read."""
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
        ends_at = time.monotonic() + 1
        while time.monotonic() < ends_at or not contents_read >= {b"inside", PathRefused}:
            try:
                contents_read.add(read_regular("sub/file.md", [root], limit=100))
            except (PathRefused, FileNotFoundError) as error:
                contents_read.add(type(error))
    finally:
        stop.set()
        swapper.join()
    assert b"secret" not in contents_read


def test_the_folders_above_a_root_are_looked_at_once(root, monkeypatch):
    """Each look gives up the interpreter, which a busy server waits for."""
    looks = []
    monkeypatch.setattr(os, "lstat", lambda path, lstat=os.lstat: looks.append(str(path)) or lstat(path))
    resolve_inside("sub/file.md", [root])
    assert looks.count(str(root.parent)) == 1


def test_a_folder_that_became_a_link_is_followed_to_where_it_leads(root, outside):
    (root / "away").symlink_to(outside)
    (root / "back").symlink_to(root / "sub")
    assert resolve_inside("back/file.md", [root])[0] == root / "sub" / "file.md"
    for path in ("away", "away/file.md", "back/../away/file.md", "sub/../away/file.md"):
        with pytest.raises(PathRefused, match="lies outside of the project"):
            resolve_inside(path, [root])
