"""The run: rounds, what they gave, and what that means."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from bench.contestants import FLOOR, Contestant, Launcher
from bench.goals import BY_KEY, FIGURES, Figure, Goal


@dataclass(frozen=True)
class Spread:
    """The median of some values, and the quartiles between which half of them lie."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """Summarize one or more values."""
        if len(values) == 1:
            return Spread(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Spread(median, low, high)


@dataclass(frozen=True)
class Row:
    """A figure of one contestant, with its goal for that one.

    `compared` is the ratio, or the difference, of each round by itself; `best` that of the best rounds of both.
    """

    figure: Figure
    contestant: str
    measured: Spread
    baseline: Spread
    compared: Spread
    best: float
    rounds: int
    goal: Goal | None = None

    @property
    def reached(self) -> bool | None:
        """Return whether the goal is reached; None without a goal."""
        return self.goal.reached(self.compared.median) if self.goal else None


def compare(figure: Figure, contestant: str, pairs: Sequence[tuple[float, float]], *, has_plugins: bool = False) -> Row:
    """Make a row of the pairs of all rounds: what was measured, and its baseline."""
    measured, baseline = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    best = max if figure.goal and figure.goal.at_least else min
    return Row(
        figure,
        contestant,
        Spread.of(measured),
        Spread.of(baseline),
        Spread.of([_compared(figure, *pair) for pair in pairs]),
        _compared(figure, best(measured), best(baseline)),
        len(pairs),
        figure.goal_of(contestant, has_plugins=has_plugins),
    )


def _compared(figure: Figure, measured: float, baseline: float) -> float:
    return measured - baseline if figure.relation == "difference" else measured / baseline


@dataclass(frozen=True)
class Sizes:
    """How much there is in the projects, and how much is called."""

    jobs: int = 1000
    finished: int = 2000
    active: int = 200
    calls: int = 10_000
    reports: int = 18
    edits: int = 10_000
    items: int = 2_000
    servers: int = 8
    agents: int = 8

    @staticmethod
    def quick() -> Sizes:
        """Return about a tenth, to see that everything works."""
        return Sizes(100, 200, 20, 500, 6, 200, 60, 2, 2)

    def fill(self, title: str) -> str:
        """Put the sizes into a title."""
        sessions = self.finished + self.active
        return title.format(jobs=self.jobs, sessions=sessions, calls=self.calls, edits=self.edits)


@dataclass
class Run:
    """What all measurements need: who is measured, how often, where; and what has come of it."""

    folder: Path
    contestants: Sequence[Contestant]
    launcher: Launcher
    sizes: Sizes
    repeats: int
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    leading: set[str] = field(default_factory=set)
    databases: Sequence[Contestant] = ()
    imports: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    _counted: bool = True

    def rounds(self, subject: str, *, repeats: int | None = None, warm_up: bool = True) -> Iterator[int]:
        """Go round by round, from 0. What that one adds is dropped: it warms up files, caches and processors."""
        repeats = repeats or self.repeats
        click.echo(f"{subject}, {repeats} rounds", err=True)
        for number in range(0 if warm_up else 1, repeats + 1):
            self._counted = number > 0
            yield number
        self._counted = True

    def add(self, key: str, contestant: Contestant, measured: float, baseline: float) -> None:
        """Keep what one round has given."""
        if self._counted:
            self.pairs[key, contestant.name].append((measured, baseline))

    def piped(self, *, leading: bool = False) -> list[Contestant]:
        """Return the contestants over stdin and stdout; with `leading` only those with workflows."""
        return [contestant for contestant in self._chosen(leading=leading) if not contestant.over_http]

    def over_http(self) -> list[Contestant]:
        """Return the contestants over HTTP that lead workflows."""
        return [contestant for contestant in self._chosen(leading=True) if contestant.over_http]

    def probe(self) -> None:
        """Start each contestant once, so that an unmeasurable one ends the run before it has begun."""
        folder = self.folder / "probe"
        folder.mkdir()
        for contestant in [FLOOR, *self.contestants, *self.databases]:
            with self.launcher.started(contestant, folder) as server:
                if server.leads_workflows:
                    self.leading.add(contestant.name)

    def rows(self) -> list[Row]:
        """Return the measurements, in the order of the figures and of the contestants."""
        order = {figure.key: place for place, figure in enumerate(FIGURES)}
        with_plugins = {
            contestant.name for contestant in [*self.contestants, *self.databases] if contestant.has_plugins
        }
        rows = [
            compare(BY_KEY[key], name, pairs, has_plugins=name in with_plugins)
            for (key, name), pairs in self.pairs.items()
            if pairs
        ]
        return sorted(rows, key=lambda row: order[row.figure.key])

    def _chosen(self, *, leading: bool) -> list[Contestant]:
        return [contestant for contestant in self.contestants if not leading or contestant.name in self.leading]


def p50(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """Return the value that 95 % of them do not exceed."""
    return sorted(values)[len(values) * 95 // 100]
