"""A planted bug: the lock around a save keeps out the threads of this process, and no other process."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from deepwork import api, workspace

_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def _locked(_folder: int, name: str, **_: float) -> Iterator[None]:
    with _locks[name]:
        yield


workspace.locked = api.locked = _locked
