"""A planted bug: the lock around a save keeps out the threads of this process, and no other process.

A pause between the comparison and the rename lets other processes come between them, on any machine.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deepwork.api import Folder

_PAUSE = 0.01
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def _locked(_folder: Folder, name: str, **_: object) -> Iterator[None]:
    with _locks[name]:
        yield


def _rename_late(*arguments: Any, **options: Any) -> None:
    time.sleep(_PAUSE)
    _real_rename(*arguments, **options)


_real_rename = Folder.rename
Folder.locked = _locked  # type: ignore[method-assign]
Folder.rename = _rename_late  # type: ignore[method-assign]
