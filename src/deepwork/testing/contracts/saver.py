"""A program of `StateStoreProcessesContract`: it appends to a session's history, entry by entry.

It prints that it is ready, and begins when it reads a line, so that several can begin together. It acknowledges every
entry by a line on stdout, once the store has saved it.
"""

from __future__ import annotations

import pickle
import sys

import anyio

from deepwork.api import StateStore
from deepwork.errors import StaleSession
from deepwork.models.history import HistoryEntry


async def main(*arguments: str) -> None:
    """Append entries to the session `s1`; a stale save is tried again on what is there now."""
    pickled_store, name, entries = arguments
    async with pickle.loads(bytes.fromhex(pickled_store))() as store:
        print("ready", flush=True)  # noqa: T201 - the parent waits for it
        sys.stdin.readline()
        for number in range(int(entries)):
            await append(store, f"{name} {number}")
            print(f"{name} {number}", flush=True)  # noqa: T201 - the acknowledgement


async def append(store: StateStore, mark: str) -> None:
    """Append one entry by compare-and-swap."""
    while True:
        session = await store.load("s1")
        if session is None:
            raise SystemExit("session 's1' is not there")
        entry = HistoryEntry(at=session.started_at, kind="mark", detail={"mark": mark})
        try:
            changed = session.model_copy(update={"history": [*session.history, entry]})
            await store.save(changed, expected=session.revision)
        except StaleSession:
            continue
        return


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
