"""The one policy for trying a transaction again."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import DBAPIError

_SQLITE_BUSY = 5
_SQLITE_LOCKED = 6
# Serialization and locks; the server starts, stops, has crashed, or has no connection left.
_POSTGRES = {"40001", "40P01", "55P03", "57P01", "57P02", "57P03", "53300"}


@dataclass(frozen=True)
class Retry:
    """Tries again for so many seconds, after pauses that grow and are never the same.

    Attributes:
        seconds: After this time the last error counts.
        first: The first pause lasts up to so many seconds.
        longest: No pause lasts longer.
    """

    seconds: float
    first: float
    longest: float

    def pauses(self) -> Iterator[bool]:
        """Wait before each further try, and end when no time is left for another one."""
        deadline = time.monotonic() + self.seconds
        pause = self.first
        while time.monotonic() < deadline:
            time.sleep(random.uniform(pause / 4, pause))
            yield True
            pause = min(pause * 1.5, self.longest)


SQLITE = Retry(seconds=30, first=0.002, longest=0.01)
POSTGRES = Retry(seconds=30, first=0.02, longest=0.5)
# Long enough for a server that starts, short enough to be told of a wrong address.
OPENING = Retry(seconds=3, first=0.02, longest=0.2)


def is_passing(error: DBAPIError) -> bool:
    """True if the same transaction may succeed a moment later."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in (_SQLITE_BUSY, _SQLITE_LOCKED)
    return error.connection_invalidated or _is_passing_state(error.orig)


def _is_passing_state(error: Any) -> bool:
    import psycopg

    state = getattr(error, "sqlstate", None)
    if state is None:  # no answer of a server: it could not be reached
        return isinstance(error, psycopg.OperationalError)
    return state in _POSTGRES or state.startswith("08")
