"""A planted bug: the lock around a save keeps out the threads of this process, and no other process."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from deepwork import api
from deepwork.builtin import json_store
from deepwork.files import locks

_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def _locked(_folder: int, name: str, **_: object) -> Iterator[None]:
    with _locks[name]:
        yield


locks.locked = api.locked = json_store.locked = _locked
