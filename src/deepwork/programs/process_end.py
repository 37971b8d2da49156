"""The end of the process, which waits for no computation, and only for what must be written down first."""

from __future__ import annotations

import os
import threading
from typing import Self

END_SECONDS = 0.9
# A record that a slow disk keeps back does not hold the process for ever.
RECORD_SECONDS = 5.0

# There is one end for all servers of a process.
_records_changed = threading.Condition()
_open_records = 0


class PendingRecord:
    """A pending result: the process does not exit until it has been saved."""

    _is_done = False

    def __enter__(self) -> Self:
        _count_record(1)
        return self

    def __exit__(self, *_: object) -> None:
        self.done()

    def done(self) -> None:
        """Let the process end, although the block goes on."""
        if not self._is_done:
            self._is_done = True
            _count_record(-1)


def end_process_soon() -> None:
    """End the process after `END_SECONDS`, without waiting for the results of its threads.

    A save under way is made whole or not at all, as after a kill.
    """
    timer = threading.Timer(END_SECONDS, _end_process)
    timer.daemon = True
    timer.start()


def _count_record(change: int) -> None:
    global _open_records
    with _records_changed:
        _open_records += change
        _records_changed.notify_all()


def _end_process() -> None:
    with _records_changed:
        _records_changed.wait_for(lambda: not _open_records, RECORD_SECONDS)
    os._exit(0)
