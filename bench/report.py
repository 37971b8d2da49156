"""What a run has given: as JSON, as a table, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.contestants import COMMAND, OURS
from bench.goals import MARGIN, RECORDED
from bench.machine import IN_MEMORY
from bench.measure import Row, Run
from bench.release import last_release

FORMAT = 3
NOTES = Path(__file__).with_name("notes.md")

Results = dict[str, Any]

PAGE = """\
# Benchmarks

How fast the server is, measured against FLOOR: a minimal FastMCP server with one echo tool. FLOOR is started and called
the same way, in the same run, on the same machine. What counts are the ratios: they change little from machine to
machine.

This page is written by the command below. Only the section [What falls short, and why](#what-falls-short-and-why) is
written by hand, in `bench/notes.md`.

## Results

{goals}

A ratio is taken in each round by itself. The table shows the median of the rounds, and in brackets the quartiles
between which half of the rounds lie.

{missed}

## What falls short, and why

{notes}

## More figures

These have no goal. They explain the figures above.

{others}

## What is imported

The milliseconds of each package itself when `tools/list` is answered, as `python -X importtime` gives them, which makes
imports slower. FLOOR shows what FastMCP costs alone.

{imports}

## Measure again

<!-- sketch -->
```bash
{command}
```

`python -m bench --help` lists the options: fewer figures, other contestants, another folder. `make bench` does the
same. A run takes some minutes, and wants a machine with nothing else to do.

## How it is measured

- The contestants take turns: each round measures all of them, one after the other. The first round is dropped. This
  run had {rounds} rounds, and spoke revision {era} of MCP.
- The client speaks JSON over pipes and sockets with nothing between. It is the same for all, and the clock stops before
  an answer is parsed.
- Times are wall times, unless a figure says processor time. Processor time and memory are those of the server's
  process.
- Every server is started by its command, in a project of its own, without any setting of the person who measures.
- A durable replace is: write a file beside the old one, fsync, rename, fsync of the folder. The file is as large as the
  session files of the run. It is timed between the calls, in the same file system.
- The crowded project has {jobs:,} jobs, {finished:,} finished and {active:,} active sessions. `deepwork sessions list`
  runs in it too. Jobs have three workflows of six steps each. Sessions come from the real engine and the real store.
- The many calls after which memory is looked at are whole workflows of 18 steps, with a `get_workflows` before each.
- "FLOOR, text of the size" answers with as many bytes as `get_workflows`, as one text. "FLOOR, the same object" answers
  with the same jobs as a Python dictionary.

| Contestant | Command |
|---|---|
{contestants}

## Machine

{machine}
"""


def results(run: Run, *, command: str, machine: dict[str, str]) -> Results:
    """Put all that a run has given into one JSON object."""
    return {
        "format": FORMAT,
        "command": command,
        "machine": machine,
        "settings": {"era": run.launcher.era.value, "rounds": run.repeats, "sizes": asdict(run.sizes)},
        "contestants": [
            # A release is installed into the folder of the run, which is another one each time.
            {"name": contestant.name, "command": contestant.command.replace(f"{run.folder}/", "")}
            for contestant in [*run.contestants, *run.databases]
        ],
        "figures": [_figure(run, row) for row in run.rows()],
        "imports": run.imports,
    }


def _figure(run: Run, row: Row) -> dict[str, Any]:
    figure = asdict(row.figure)
    return {
        **figure,
        "goal": asdict(row.goal) if row.goal else None,
        "title": run.sizes.fill(row.figure.title),
        "contestant": row.contestant,
        "measured": asdict(row.measured),
        "baseline": asdict(row.baseline),
        "compared": asdict(row.compared),
        "best": row.best,
        "rounds": row.rounds,
        "reached": row.reached,
    }


def lines(measurements: Results) -> list[str]:
    """Return a table for the terminal."""
    release = last_release()
    head = ["figure", "contestant", "measured", "compared with", "", release["release"], "goal", "result"]
    cells = [[cell.replace("`", "") for cell in _cells(row, release["compared"])] for row in measurements["figures"]]
    tables = [_aligned([head, *cells]), *map(_aligned, _import_tables(measurements))]
    return [line for table in tables for line in table]


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _import_tables(measurements: Results) -> list[list[list[str]]]:
    """Return for each server a table of the packages that it imports, in milliseconds."""
    return [
        [[f"imported by {name}", "ms"], *([package, _number(time)] for package, time in packages)]
        for name, packages in measurements["imports"].items()
    ]


def _missed(rows: Sequence[Results]) -> str:
    """List the goals that are missed, and by how much."""
    missed = [row for row in rows if row["reached"] is False]
    if not missed:
        return "Every goal is reached."
    items = [
        f"- {row['title']}, {row['contestant']}: {_cells(row, {})[4]}, the goal is {_goal(row)}." for row in missed
    ]
    return "\n".join([f"Missed: {len(missed)} of {len(rows)}.", "", *items])


def slower(measurements: Results) -> list[str]:
    """Name the ratios of our own server that have become much larger than the recorded ones."""
    ours = {contestant.name for contestant in [*OURS, COMMAND]}
    return [
        f"{row['title']}: {row['contestant']} has {row['best']:.2f}, recorded is {RECORDED[row['key']]:g}"
        for row in measurements["figures"]
        if row["contestant"] in ours and row["key"] in RECORDED and row["best"] > RECORDED[row["key"]] * MARGIN
    ]


def write_report(measurements: Results, page: Path) -> None:
    """Write the page."""
    with_goal = [row for row in measurements["figures"] if row["goal"]]
    page.write_text(
        PAGE.format(
            goals=_table(with_goal),
            missed=_missed(with_goal),
            imports="\n\n".join(_import_table(table) for table in _import_tables(measurements))
            or "Not measured in this run.",
            notes=NOTES.read_text().strip(),
            others=_table([row for row in measurements["figures"] if not row["goal"]]),
            command=measurements["command"],
            rounds=measurements["settings"]["rounds"],
            era=measurements["settings"]["era"],
            **{name: measurements["settings"]["sizes"][name] for name in ("jobs", "finished", "active")},
            contestants="\n".join(
                f"| {contestant['name']} | `{contestant['command']}` |" for contestant in measurements["contestants"]
            ),
            machine=_machine(measurements["machine"]),
        )
    )


def _machine(machine: dict[str, str]) -> str:
    rows = "\n".join(f"| {name} | {value} |" for name, value in machine.items())
    table = f"| | |\n|---|---|\n{rows}"
    if machine["file system"] in IN_MEMORY:
        table += "\n\nThe projects lay in memory, where fsync costs nothing: durable calls were not really measured."
    return table


def _table(rows: Sequence[Results]) -> str:
    release = last_release()
    head = f"| Figure | Contestant | Measured | Compared with | | {release['release']} | Goal | |"
    lines = [f"| {' | '.join(_cells(row, release['compared']))} |" for row in rows]
    return "\n".join([head, "|---|---|--:|---|--:|--:|--:|---|", *lines])


def _import_table(rows: list[list[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---|--:|", *body])


def _goal(row: Results) -> str:
    goal = row["goal"]
    return f"{'≥' if goal['at_least'] else '≤'} {goal['limit']:.3g}{_unit(row)}" if goal else ""


def _unit(row: Results) -> str:
    return "x" if row["relation"] == "ratio" else f" {row['unit']}"


def _cells(row: Results, release: Mapping[str, float]) -> list[str]:
    """Show a figure beside that of the last release: the same on the page and in the terminal."""
    is_ratio = row["relation"] == "ratio"
    compared = row["compared"]
    value, low, high = (_compared(compared[name], is_ratio=is_ratio) for name in ("median", "low", "high"))
    before = release.get(f"{row['key']} {row['contestant']}")
    unit = _unit(row)
    return [
        row["title"],
        row["contestant"],
        f"{_number(row['measured']['median'])} {row['unit']}",
        f"{row['against']}: {_number(row['baseline']['median'])}",
        f"{value}{unit} ({low} to {high})",
        "" if before is None else f"{_compared(before, is_ratio=is_ratio)}{unit}",
        _goal(row),
        {True: "reached", False: "missed", None: ""}[row["reached"]],
    ]


def _compared(value: float, *, is_ratio: bool) -> str:
    return f"{value:.2f}" if is_ratio else f"{value:+.1f}"


def _number(value: float) -> str:
    """Show three digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
