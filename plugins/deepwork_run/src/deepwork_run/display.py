"""What people see of a run: one live line in a terminal, and a line for each thing that happens."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import click

from deepwork.api import Session
from deepwork.sessions.standing import standing_of
from deepwork.text import visible
from deepwork_run.record import Run


class Display:
    """Writes to stderr, in a terminal a live line too; stdout is for the result."""

    def __init__(self) -> None:
        self.session: Session | None = None  # as it was read last
        self.is_live = sys.stderr.isatty()
        self._is_drawn = False

    def log(self, text: str) -> None:
        """Write a line."""
        self.clear()
        click.echo(visible(text), err=True)

    def draw(self, run: Run, agent: str | None, elapsed: float) -> None:
        """Draw the live line anew: `step 3 of 7, claude, 4:10, $0.42, waits until 15:40`."""
        if not self.is_live or self.session is None:
            return
        click.echo(f"\r{visible(live_line(self.session, run, agent, elapsed))}\x1b[K", nl=False, err=True)
        self._is_drawn = True

    def clear(self) -> None:
        """Take the live line away."""
        if self._is_drawn:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._is_drawn = False


def live_line(session: Session, run: Run, agent: str | None, elapsed: float) -> str:
    """Return what a run does now, in a line."""
    standing = standing_of(session)
    cost = run.totals()["cost_usd"]
    parts = [standing.position, agent or "", duration(elapsed)]
    parts.append(f"${cost:.2f}" if cost is not None else "")
    if standing.waits:
        parts.append("waits for a person")
    elif run.is_asking and run.pause:
        parts.append(f"waits for a person: {run.pause.kind}")
    elif standing.pause and not agent:
        until = datetime.fromisoformat(standing.pause.until)
        parts.append(f"waits until {until.astimezone():%H:%M}" if until > datetime.now(UTC) else "")
    return ", ".join(filter(None, parts))


def shown(moment: datetime) -> str:
    """Return a moment as the clock of this machine shows it."""
    local = moment.astimezone()
    return f"{local:%H:%M}" if local.date() == datetime.now().astimezone().date() else f"{local:%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """Return a time as `4:10` or `1:04:10`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
