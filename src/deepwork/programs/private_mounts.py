"""Runs one program that sees a project otherwise than it is. A script of its own: it imports nothing of ours.

    python -I -S private_mounts.py PROJECT MOUNT CHANGES PROGRAM [ARGUMENT]...

In a mount namespace of its own it lays a file system over PROJECT whose changes are kept in memory, at MOUNT, an empty
folder outside of it. CHANGES is a folder: `files/PATH` is what the program sees at PATH of the project, and a line of
`missing` is a path at which it sees nothing. What the program writes below PROJECT stays in memory, too. All of it is
gone with its last process. If the system does not allow that, it says so on stderr after `MARK`, and ends with 125.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from contextlib import suppress

MARK = "deepwork cannot make private mounts: "
FAILED = 125
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_NOSUID = 2
MS_NODEV = 4


def main(project: str, mount_point: str, changes: str, command: list[str]) -> None:
    """Make the mounts, and become the program."""
    here = os.getcwd()
    try:
        _lay_over(project, mount_point, _private())
        _change(project, changes)
        os.chdir(here)  # below the project it is the folder of the layer from now on
    except OSError as error:
        sys.stderr.write(f"{MARK}{error.strerror or error}\n")
        sys.exit(FAILED)
    try:
        os.execve(command[0], command, _environment())
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(126)


def _environment() -> dict[bytes, bytes]:
    """Return the variables that we were started with; Python may have added one for its own locale."""
    with open("/proc/self/environ", "rb") as file:
        pairs = (item.partition(b"=") for item in file.read().split(b"\0") if item)
        return {name: value for name, _, value in pairs}


def _private() -> str:
    """Enter a mount namespace of our own, and return the options that a layer in it needs."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        with suppress(OSError):
            _unshare(CLONE_NEWNS)
            _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
            return ""
    _unshare(CLONE_NEWUSER | CLONE_NEWNS)
    for name, words in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(words)
    _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    return ",userxattr"


def _lay_over(project: str, mount_point: str, more: str) -> None:
    _call("mount", b"tmpfs", os.fsencode(mount_point), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=700")
    upper, work = (os.path.join(mount_point, name) for name in ("upper", "work"))
    os.mkdir(upper)
    os.mkdir(work)
    shutil.copystat(project, upper)
    options = f"lowerdir={_escaped(project)},upperdir={_escaped(upper)},workdir={_escaped(work)}{more}"
    _call("mount", b"overlay", os.fsencode(project), b"overlay", 0, os.fsencode(options))


def _change(project: str, changes: str) -> None:
    files = os.path.join(changes, "files")
    for folder, _, names in os.walk(files):
        for name in names:
            source = os.path.join(folder, name)
            target = os.path.join(project, os.path.relpath(source, files))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            mode = None
            with suppress(FileNotFoundError):
                mode = os.stat(target).st_mode & 0o7777
                os.unlink(target)
            shutil.copyfile(source, target)
            shutil.copystat(source, target)
            if mode is not None:
                os.chmod(target, mode)
    with open(os.path.join(changes, "missing"), "rb") as listed:
        for path in filter(None, listed.read().split(b"\n")):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(os.fsencode(project), path))


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def _unshare(flags: int) -> None:
    _call("unshare", flags)


def _call(name: str, *arguments: object) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
