"""Loaded by Python at the start of a server under torture: its clock is wrong by as much as a file says.

The file that `DEEPWORK_CLOCK` names holds the seconds, and may change while the server runs.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from typing import Self

_CLOCK = os.environ.get("DEEPWORK_CLOCK", "")
_real_time = time.time


def _shift() -> float:
    with open(_CLOCK) as file:
        return float(file.read())


class _Shifted(dt.datetime):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return super().now(tz) + dt.timedelta(seconds=_shift())


if _CLOCK:
    time.time = lambda: _real_time() + _shift()
    dt.datetime = _Shifted  # type: ignore[misc]
