"""Loaded by Python at the start of a server under torture, below everything of ours: makes one write fail.

The file that `DEEPWORK_TORTURE` names holds "token n errno" while it exists, which is only during the call under
test. Of all that is done from then on to files under `.deepwork`, the n-th fails; what it was is written to the file
`<token>` beside it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

_CONTROL = os.environ.get("DEEPWORK_TORTURE", "")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_real = {name: getattr(os, name) for name in ("open", "write", "fsync", "replace", "mkdir", "unlink")}
_counting = threading.Lock()
_token, _count = "", 0


def _place(target: Any, folder: int | None) -> str:
    if isinstance(target, int):
        target, folder = ".", target
    start = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.getcwd()
    return os.path.normpath(os.path.join(start, os.fspath(target)))


def _may_fail(operation: str, target: Any, folder: int | None = None) -> None:
    global _token, _count
    try:
        control = _real["open"](_CONTROL, os.O_RDONLY)
    except OSError:
        return
    token, number, error = os.read(control, 100).decode().split()
    os.close(control)
    place = _place(target, folder)
    if "/.deepwork" not in place:
        return
    with _counting:
        if token != _token:
            _token, _count = token, 0
        _count += 1
        if _count != int(number):
            return
    report = _real["open"](os.path.join(os.path.dirname(_CONTROL), token), os.O_WRONLY | os.O_CREAT, 0o600)
    _real["write"](report, f"{operation} {place}".encode())
    os.close(report)
    raise OSError(int(error), os.strerror(int(error)))


def _wrapped(name: str) -> Callable[..., Any]:
    real = _real[name]

    @functools.wraps(real)
    def wrapper(target: Any, *args: Any, **kwargs: Any) -> Any:
        if name != "open" or args[0] & _WRITING:
            _may_fail(name, target, kwargs.get("dir_fd", kwargs.get("src_dir_fd")))
        return real(target, *args, **kwargs)

    return wrapper


if _CONTROL:
    for _name in _real:
        setattr(os, _name, _wrapped(_name))
