"""What a torture has found out, for people to read."""

from __future__ import annotations

import sys
import threading
import time
from typing import NoReturn

import click

TOLD_EVERY = 10.0

seed_option = click.option("--seed", default=1, show_default=True, help="The same seed makes the same choices.")


class Progress:
    """Prints now and then, on stderr, how far a long run is."""

    def __init__(self, name: str, total: int) -> None:
        self._name = name
        self._total = total
        self._done = 0
        self._told = time.monotonic()
        self._counting = threading.Lock()

    def step(self) -> None:
        """Count one more, from any thread."""
        with self._counting:
            self._done += 1
            if time.monotonic() - self._told < TOLD_EVERY:
                return
            self._told = time.monotonic()
        print(f"{self._name}: {self._done:,} of {self._total:,}", file=sys.stderr, flush=True)


class Report:
    """A title, facts, and promises that were kept or broken."""

    def __init__(self, title: str) -> None:
        self._began = time.monotonic()
        self._lines = [title]
        self.broken: list[str] = []

    def fact(self, name: str, value: object) -> None:
        """Report what was done."""
        self._lines.append(f"  {name:<52} {_shown(value):>9}")

    def note(self, text: str) -> None:
        """Report something other than a number, such as what was skipped."""
        self._lines.append(f"  {text}")

    def promise(self, name: str, complaints: list[str] | int, goal: int = 0) -> None:
        """Compare a count, or the length of a list of complaints, with the goal."""
        count = complaints if isinstance(complaints, int) else len(complaints)
        verdict = "ok" if count == goal else "FAILED"
        self._lines.append(f"  {name:<52} {_shown(count):>9}   goal {_shown(goal):>6}   {verdict}")
        if count != goal:
            self.broken.append(name)
            self._lines += [f"      {line}" for line in (complaints[:5] if isinstance(complaints, list) else [])]

    def finish(self) -> NoReturn:
        """Print all of it, and exit: with 1 if a promise was broken."""
        self._lines.append(f"  {'seconds':<52} {time.monotonic() - self._began:>9.1f}")
        self._lines.append(f"  {'FAILED: ' + ', '.join(self.broken) if self.broken else 'every promise was kept'}")
        print("\n".join(self._lines), flush=True)
        sys.exit(1 if self.broken else 0)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
