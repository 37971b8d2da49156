"""Servers are killed in the middle of calls; what they had acknowledged must be there afterwards."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from ledger import Victim, tell_losses, torment
from report import Report


def kills(count: int, seed: int) -> int:
    """Kill servers, and say what was lost."""
    report = Report(f"kills: servers on stdio ended by SIGKILL in the middle of calls, seed {seed}")
    tell_losses(report, torment("kills", count, seed, _victim), ends="servers killed")
    return report.finish()


def _victim(folder: Path, seed: str) -> AbstractContextManager[Victim]:
    return nullcontext(Victim(folder, seed))
