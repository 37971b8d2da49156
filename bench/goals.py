"""What is measured, and what it should be. One line a figure; the goals stand here alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Goal:
    """A limit."""

    limit: float
    at_least: bool = False

    def reached(self, value: float) -> bool:
        """True if a value keeps to it."""
        return value >= self.limit if self.at_least else value <= self.limit

    def eased(self) -> Goal:
        """Return the same goal for a server with all plugins."""
        return Goal(self.limit / WITH_PLUGINS if self.at_least else self.limit * WITH_PLUGINS, self.at_least)


@dataclass(frozen=True)
class Figure:
    """Something that is measured of each contestant and compared with something measured beside it.

    Figures without a goal explain the others. `{jobs}`, `{sessions}`, `{calls}` and `{edits}` are filled in with the
    sizes of the run.

    Attributes:
        stores: Goals for servers with their sessions in a database, by the name of the contestant.
    """

    key: str
    title: str
    unit: str
    against: str
    goal: Goal | None = None
    relation: Literal["ratio", "difference"] = "ratio"
    stores: Mapping[str, Goal] = field(default_factory=dict)

    def goal_of(self, contestant: str, *, has_plugins: bool) -> Goal | None:
        """Return what a contestant should reach."""
        if contestant in self.stores:
            return self.stores[contestant]
        return self.goal.eased() if self.goal and has_plugins else self.goal


# What the goals say of our server alone. With all plugins it may miss them by this factor.
WITH_PLUGINS = 1.3


def at_most(limit: float) -> Goal:
    """Make a limit from above."""
    return Goal(limit)


def at_least(limit: float) -> Goal:
    """Make a limit from below."""
    return Goal(limit, at_least=True)


DURABLE = "FLOOR's call + 2 durable replaces"
IN_DATABASES = {"SQLite": at_least(0.5), "PostgreSQL": at_least(0.33)}

FIGURES = (
    Figure("start", "spawn → `tools/list` answered", "ms", "FLOOR", at_most(0.85)),
    Figure("start.cpu", "spawn → `tools/list` answered, processor time", "ms CPU", "FLOOR"),
    Figure("exit", "exit after closed stdin", "ms", "FLOOR", at_most(0.3)),
    Figure("exit.cpu", "exit after closed stdin, processor time", "ms CPU", "FLOOR"),
    Figure("memory.start", "memory after `tools/list`", "MiB", "FLOOR", at_most(1)),
    Figure(
        "memory.calls", "memory after {calls:,} calls", "MiB", "itself after `tools/list`", at_most(5), "difference"
    ),
    Figure("memory.floor", "memory after {calls:,} calls", "MiB", "FLOOR after as many", None, "difference"),
    Figure("step.start", "`start_workflow`, 18 steps, durable, p50", "ms", DURABLE, at_most(1.15)),
    Figure("step.finish", "`finished_step`, 18 steps, durable, p50", "ms", DURABLE, at_most(1.15)),
    Figure("step.cpu", "`finished_step`, 18 steps, processor time", "ms CPU", "FLOOR's call"),
    *(
        Figure(key, title, "/s", "FLOOR's calls/s", at_least(0.6), stores=IN_DATABASES)
        for key, title in (
            ("flight.8", "`finished_step` per second, 8 in flight"),
            ("flight.32", "`finished_step` per second, 32 in flight"),
        )
    ),
    Figure("flight.32.cpu", "`finished_step`, 32 in flight, processor time", "ms CPU", "one at a time", at_most(1.3)),
    Figure("flight.http", "`finished_step` per second, 8 connections", "/s", "FLOOR over HTTP", at_least(0.5)),
    Figure("list.first", "`get_workflows`, {jobs:,} jobs, first call", "ms", "reading + CSafeLoader", at_most(2)),
    Figure(
        "list.first.cpu",
        "`get_workflows`, {jobs:,} jobs, first call, processor time",
        "ms CPU",
        "reading + CSafeLoader",
    ),
    Figure("list.next", "`get_workflows`, {jobs:,} jobs, next calls", "ms", "FLOOR, text of the size", at_most(3)),
    Figure(
        "list.next.cpu",
        "`get_workflows`, {jobs:,} jobs, next calls, processor time",
        "ms CPU",
        "FLOOR, text of the size",
    ),
    Figure("list.next.table", "`get_workflows`, {jobs:,} jobs, next calls", "ms", "FLOOR, the same object"),
    Figure("crowd.start", "`start_workflow` in the crowded project", "ms", "empty project", at_most(1.15)),
    Figure("crowd.finish", "`finished_step` in the crowded project", "ms", "empty project", at_most(1.1)),
    Figure("crowd.cpu", "`finished_step` in the crowded project, processor time", "ms CPU", "empty project"),
    Figure(
        "sessions.cpu",
        "`deepwork sessions list`, processor time",
        "ms CPU",
        "`deepwork --version`",
        at_most(3),
    ),
    Figure("growth.jobs", "`finished_step` beside {jobs:,} jobs", "ms", "beside one", at_most(1.1)),
    Figure("growth.sessions", "`finished_step` beside {sessions:,} sessions", "ms", "beside two", at_most(1.1)),
    Figure(
        "claims",
        "claimed and completed per second, 8 servers of 8 agents",
        "/s",
        "RAW",
        at_least(0.75),
        stores=dict.fromkeys(IN_DATABASES, at_least(0.75)),
    ),
    Figure("claims.cpu", "a claim and its completion, processor time", "ms CPU", "RAW"),
    Figure("tokens.list", "the whole answer of `tools/list`", "tokens", "its budget", at_most(1)),
    Figure("tokens.tools", "what a model reads of a tool set", "tokens", "its budget", at_most(1)),
    Figure("tokens.replies", "the replies of a run of three steps", "tokens", "its budget", at_most(1)),
    Figure("tokens.empty", "additive fields that say nothing", "tokens", "none", at_most(0), "difference"),
    Figure("authoring.check", "`deepwork jobs check` of 100 jobs", "ms", "its budget", at_most(1)),
    Figure("authoring.test", "100 tests of jobs, without the start", "ms", "its budget", at_most(1)),
    Figure("authoring.keys.600", "keystroke → diagnostics, job of 600 lines, p95", "ms", "its budget", at_most(1)),
    Figure("authoring.keys.5000", "keystroke → diagnostics, job of 5,000 lines, p95", "ms", "its budget", at_most(1)),
    Figure(
        "authoring.memory",
        "memory of the language server, {edits:,} random edits of each example",
        "MiB",
        "itself before them",
        at_most(20),
        "difference",
    ),
)

# The ratios of this state, of processor time, which other work on the machine changes little. `--check` fails when one
# is MARGIN times as large. Whoever makes the server faster puts the new ratio here.
RECORDED = {
    "start.cpu": 0.85,
    "exit.cpu": 0.13,
    "step.cpu": 2.0,
    "list.first.cpu": 1.9,
    "list.next.cpu": 8.1,
    "sessions.cpu": 1.6,
}
MARGIN = 1.35

BY_KEY = {figure.key: figure for figure in FIGURES}
