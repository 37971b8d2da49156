"""Small plots as SVG files, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH = 760
STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f } .dim { fill: #57606a } .title { font-weight: 600 }
.grid { stroke: #d0d7de; stroke-width: 1 } .limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 3 }
.c0 { stroke: #0969da; fill: #0969da } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #1a7f37; fill: #1a7f37 }
.c3 { stroke: #8250df; fill: #8250df } .curve { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .grid { stroke: #3d444d } .limit { stroke: #ff7b72 }
.c0 { stroke: #58a6ff; fill: #58a6ff } .c1 { stroke: #f0883e; fill: #f0883e } .c2 { stroke: #3fb950; fill: #3fb950 }
.c3 { stroke: #bc8cff; fill: #bc8cff } .curve { fill: none } }
</style>"""
COLOURS = 4
MISSED = 2.0

Row = dict[str, Any]


def share_of_goal(row: Row, value: float) -> float:
    """Return how much of its goal a value uses up: at 1 it is just reached, above it is missed."""
    goal = row["goal"]
    whole, part = (value, goal["limit"]) if goal["at_least"] else (goal["limit"], value)
    if not whole:  # a goal of none at all, for instance
        return 1.0 if part <= 0 else MISSED
    return float(max(part / whole, 0.0))


def plot_goals(rows: Sequence[Row]) -> str:
    """Draw every figure that has a goal as a share of that goal, with its quartiles."""
    left, right, line, top, most = 310, 90, 24, 52, 2.0
    names = list(dict.fromkeys(row["contestant"] for row in rows))
    figures = list(dict.fromkeys((row["key"], row["title"]) for row in rows))
    height = top + line * len(figures) + 30

    def x(share: float) -> float:
        return left + (WIDTH - left - right) * min(share, most) / most

    parts = [*_legend(names, "Share of the goal: left of the dashed line it is reached")]
    for tick in (0, 0.5, 1, 1.5, 2):
        kind = "limit" if tick == 1 else "grid"
        parts.append(_line(kind, x(tick), top - 6, x(tick), height - 24))
        parts.append(_text(x(tick), height - 8, f"{tick:g}", "dim", "middle"))
    for place, (key, title) in enumerate(figures):
        y = top + line * place + 8
        parts.append(_text(left - 12, y + 4, title.replace("`", ""), "", "end"))
        own = [row for row in rows if row["key"] == key]
        for number, row in enumerate(own):
            low, median, high = (share_of_goal(row, row["compared"][name]) for name in ("low", "median", "high"))
            at = y + 6 * (number - (len(own) - 1) / 2)
            colour = f"c{names.index(row['contestant']) % COLOURS}"
            parts.append(_line(colour, x(low), at, x(high), at))
            parts.append(f'<circle class="{colour}" cx="{x(median):.1f}" cy="{at:.1f}" r="3.5"/>')
        shares = [share_of_goal(row, row["compared"]["median"]) for row in own]
        if max(shares) > most:
            parts.append(_text(WIDTH - right + 8, y + 4, " / ".join(f"{share:.1f}" for share in shares), "dim"))
    return _picture(height, parts)


def plot_curve(curve: Row) -> str:
    """Draw how calls grow along one axis."""
    left, right, top, height = 60, 24, 52, 300
    bottom = height - 46
    sizes: list[int] = curve["sizes"]
    lines: dict[str, list[dict[str, float]]] = curve["lines"]
    step = _nice(max(spread["high"] for line in lines.values() for spread in line) / 4)
    most = step * math.ceil(max(spread["high"] for line in lines.values() for spread in line) / step)

    def x(size: int) -> float:
        span = math.log(sizes[-1] / sizes[0])
        return left + (WIDTH - left - right) * math.log(size / sizes[0]) / span

    def y(value: float) -> float:
        return bottom - (bottom - top) * value / most

    parts = [*_legend(list(lines), "Milliseconds of one call")]
    for number in range(round(most / step) + 1):
        parts.append(_line("grid", left, y(number * step), WIDTH - right, y(number * step)))
        parts.append(_text(left - 8, y(number * step) + 4, f"{number * step:g}", "dim", "end"))
    parts += [_text(x(size), bottom + 18, f"{size:,}", "dim", "middle") for size in sizes]
    parts.append(_text((left + WIDTH - right) / 2, height - 8, curve["axis"], "dim", "middle"))
    for number, line in enumerate(lines.values()):
        colour = f"c{number % COLOURS}"
        points = " ".join(f"{x(size):.1f},{y(spread['median']):.1f}" for size, spread in zip(sizes, line, strict=True))
        parts.append(f'<polyline class="{colour} curve" points="{points}"/>')
        for size, spread in zip(sizes, line, strict=True):
            parts.append(_line(colour, x(size), y(spread["low"]), x(size), y(spread["high"])))
            parts.append(f'<circle class="{colour}" cx="{x(size):.1f}" cy="{y(spread["median"]):.1f}" r="3.5"/>')
    return _picture(height, parts)


def _nice(step: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.999)


def _legend(names: Sequence[str], title: str) -> list[str]:
    parts, at = [_text(12, 18, title, "title")], 12
    for number, name in enumerate(names):
        parts.append(f'<circle class="c{number % COLOURS}" cx="{at + 5}" cy="34" r="4"/>')
        parts.append(_text(at + 14, 38, name, ""))
        at += 34 + 7 * len(name)
    return parts


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _picture(height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, STYLE, *parts, "</svg>\n"])
