"""What reviews have cost, added up from the histories of sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio

from deepwork.api import SessionSummary, history
from deepwork.models.history import HistoryEntry
from deepwork_dashboard.answers import Mapped
from deepwork_dashboard.dashboard import Dashboard
from deepwork_dashboard.recent import Recent

MAX_SESSIONS = 1000
MAX_DAYS = 60
# An answer does not wait longer for sessions that have not been added up yet; the next one goes on.
SECONDS = 0.5


@dataclass
class Spent:
    """Sums over verdicts."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    verdicts: int = 0
    failed_verdicts: int = 0
    reused: int = 0
    seconds: float = 0.0
    by: dict[tuple[str, str], Spent] = field(default_factory=dict)

    def add_all(self, entries: Iterable[HistoryEntry]) -> None:
        """Add the verdicts among these entries."""
        for entry in entries:
            verdict = entry.detail
            if isinstance(verdict, history.Verdict):
                self._add(verdict)
                for kind, name in (("runner", verdict.runner), ("model", verdict.model), ("day", entry.at[:10])):
                    if name is not None:
                        self.by.setdefault((kind, name), Spent())._add(verdict)  # noqa: SLF001 - one of its own

    def join(self, other: Spent) -> None:
        """Add the sums of others."""
        self.cost_usd += other.cost_usd
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.verdicts += other.verdicts
        self.failed_verdicts += other.failed_verdicts
        self.reused += other.reused
        self.seconds += other.seconds
        for key, part in other.by.items():
            self.by.setdefault(key, Spent()).join(part)

    def brief(self) -> Mapped:
        """Return the sums that a step shows."""
        return {
            "cost_usd": round(self.cost_usd, 6),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "verdicts": self.verdicts,
        }

    def whole(self) -> Mapped:
        """Return the sums that the overview shows."""
        days = sorted(self._parts("day"), key=lambda part: str(part["name"]), reverse=True)[:MAX_DAYS]
        return {
            **self.brief(),
            "failed_verdicts": self.failed_verdicts,
            "reused": self.reused,
            "seconds": round(self.seconds, 3),
            "by_runner": self._parts("runner"),
            "by_model": self._parts("model"),
            "by_day": [{"day": day.pop("name"), **day} for day in days],
        }

    def _parts(self, kind: str) -> list[Mapped]:
        parts = [{"name": name, **part.brief()} for (of, name), part in self.by.items() if of == kind]
        return sorted(parts, key=lambda part: (-part["cost_usd"], -part["verdicts"], part["name"]))

    def _add(self, verdict: history.Verdict) -> None:
        self.verdicts += 1
        self.failed_verdicts += not verdict.passed
        if verdict.reused:  # an earlier verdict that counts again; it was paid for once
            self.reused += 1
            return
        self.cost_usd += _number(verdict.cost_usd)
        self.input_tokens += int(_number(verdict.input_tokens))
        self.output_tokens += int(_number(verdict.output_tokens))
        self.seconds += _number(verdict.seconds)


def _number(value: float | None) -> float:
    """Read a number of a session, which anybody may have written."""
    return float(value) if value is not None and 0 <= value < 1e12 else 0.0


class Spending:
    """Adds up sessions, each again only when it has changed, and not all at once."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._sums: Recent[Spent] = Recent(2 * MAX_SESSIONS)

    async def of(self, summaries: list[SessionSummary]) -> Mapped:
        """Return the sums of the newest sessions."""
        total, counted = Spent(), 0
        deadline = anyio.current_time() + SECONDS
        newest = summaries[:MAX_SESSIONS]
        for summary in newest:
            key = summary.session_id, summary.updated_at
            spent = self._sums.get(key)
            if spent is None and anyio.current_time() < deadline:
                spent = Spent()
                session = await self._dashboard.session_of(summary)
                spent.add_all(session.history if session else ())
                self._sums.put(key, spent)
            if spent is not None:
                total.join(spent)
                counted += 1
        return {**total.whole(), "sessions": counted, "complete": counted == len(summaries)}
