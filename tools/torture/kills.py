"""Servers are killed in the middle of calls; what they had acknowledged must be there afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ledger import Victim, tell_losses, torment
from report import Report
from stores import opened_store


def kills(count: int, transport: str, store: str, seed: int) -> int:
    """Kill servers, and say what was lost."""
    report = Report(f"kills: servers ({transport}, {store}) ended by SIGKILL in the middle of calls, seed {seed}")
    tell_losses(report, torment("kills", count, seed, partial(_victim, transport, store)), ends="servers killed")
    return report.finish()


@contextmanager
def _victim(transport: str, store: str, folder: Path, seed: str) -> Iterator[Victim]:
    with opened_store(store, folder) as opened:
        yield Victim(folder, seed, store=opened, transport=transport)
