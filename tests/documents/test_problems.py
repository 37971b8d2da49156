"""A problem as its author reads it."""

from __future__ import annotations

from deepwork.documents.problems import Problem


def test_a_problem_is_one_short_printable_line():
    line = Problem("a\nb\x1b[31m" + "x" * 5000, 3).at("f")
    assert line.startswith("f:3: a\\nb\\x1b[31mx")
    assert len(line) < 1100
    assert line.endswith("…")
