"""Mutants: one small fault each, the same for the same seed."""

from __future__ import annotations

import ast
import sys
from itertools import islice
from random import Random

import pytest

from deepwork.builtin.proofs.interval import exact_interval
from deepwork.builtin.proofs.javascript import faults
from deepwork.builtin.proofs.mutants import mutants

PYTHON = b'''"""A module."""


def price(count: int, *, member: bool = False) -> float:
    """Return a price."""
    total = count * 3
    if count > 10 and member:
        total = total - 5
        total -= 1
    return total


NAMES = ["one", "two"]
'''
TEXT = b"# Report\n\nThere are 12 people, see docs/guide.md.\nIt is true.\n"


def made(path, content, seed=1, count=1000):
    return [*islice(mutants(path, content, Random(seed)), count)]


def test_python_stays_python_and_is_never_the_same():
    variants = made("a.py", PYTHON)
    for mutant in variants:
        assert ast.dump(ast.parse(mutant.content)) != ast.dump(ast.parse(PYTHON))
    kinds = {mutant.kind.partition(" in line")[0] for mutant in variants}
    assert kinds == {
        *("a comparison turned", "a condition turned", "another operator", "a boolean turned", "another number"),
        *("another text", "nothing returned", "a statement removed"),
    }


JAVASCRIPT = b"""import assert from "assert";
const fs = require("fs");
// 12 people
export function price(count, member = false) {
  let total = count * 3;
  if (member && count > 10) {
    total = total - 5;
    log("cheap");
  }
  return total;
}
"""
TYPESCRIPT = JAVASCRIPT.replace(b"(count, member = false)", b"(count: number, member: boolean = false): number")
COMPONENT = TYPESCRIPT.replace(b"return total", b'return <b title="x">{total}</b>')


@pytest.mark.parametrize(
    ("path", "content"), [("a.js", JAVASCRIPT), ("a.mjs", JAVASCRIPT), ("a.ts", TYPESCRIPT), ("a.tsx", COMPONENT)]
)
def test_scripts_are_changed_at_places_of_their_syntax(path, content):
    variants = made(path, content)
    kinds = {mutant.kind.partition(" in line")[0] for mutant in variants}
    assert kinds == {
        *("a comparison turned", "a condition turned", "another operator", "a boolean turned", "another number"),
        *("another text", "nothing returned", "a statement removed"),
    }
    assert all(b'from "assert"' in mutant.content and b'require("fs")' in mutant.content for mutant in variants)
    assert all(b"// 12 people" in mutant.content for mutant in variants)
    assert all([*faults(path, mutant.content)] for mutant in variants)  # each can be parsed again


def test_a_script_that_cannot_be_parsed_is_text_and_so_is_each_without_the_extra(monkeypatch):
    broken = JAVASCRIPT.replace(b"{", b"", 1)
    assert "its first half alone" in {mutant.kind for mutant in made("a.js", broken)}
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert "its first half alone" in {mutant.kind for mutant in made("a.js", JAVASCRIPT)}


def test_no_name_is_left_without_a_value():
    assert all(b"total = " in mutant.content and b"NAMES = " in mutant.content for mutant in made("a.py", PYTHON))


def test_docstrings_are_left_alone():
    assert all(
        b"A module." in mutant.content and b"Return a price." in mutant.content for mutant in made("a.py", PYTHON)
    )


def test_text_has_numbers_paths_names_booleans_lines_and_its_half():
    kinds = {mutant.kind.partition(" in line")[0] for mutant in made("a.md", TEXT)}
    assert {"another number", "another path", "another name", "a boolean turned", "a line removed"} <= kinds
    assert "its first half alone" in kinds


def test_of_a_change_its_own_lines_are_removed():
    before = b"# Report\n\nIt is true.\n"
    removed = [
        mutant.content for mutant in mutants("a.md", TEXT, Random(1), before) if mutant.kind.startswith("a line of the")
    ]
    assert removed == [TEXT.replace(b"There are 12 people, see docs/guide.md.\n", b"")]
    kinds = [mutant.kind for mutant in mutants("a.md", TEXT, Random(1), TEXT)]
    assert not any("of the change" in kind for kind in kinds)
    assert sum("a line removed" in kind for kind in kinds) == 3


@pytest.mark.parametrize(("path", "content"), [("a.py", PYTHON), ("a.md", TEXT), ("b.bin", bytes(range(256)))])
def test_a_seed_decides_and_no_mutant_comes_twice(path, content):
    first, again, of_another_seed = made(path, content), made(path, content), made(path, content, seed=2)
    assert first == again != of_another_seed
    assert len({mutant.content for mutant in first}) == len(first)
    assert content not in {mutant.content for mutant in first}


@pytest.mark.parametrize("content", [b"", b" \n", b"x" * 5_000_000])
def test_what_is_empty_or_huge_has_none(content):
    assert made("a.md", content) == []


def test_no_mutant_is_empty():
    """A gate that only looks whether there is something would refuse it, and look as if it read the content."""
    assert all(mutant.content.strip() for mutant in made("a.md", b"One line\n"))


def test_broken_python_is_text():
    assert made("a.py", b"def f(:\n  return 12\n")


@pytest.mark.parametrize(
    ("killed", "of", "interval"),
    [(0, 0, (0, 1)), (0, 10, (0, 0.3085)), (10, 10, (0.6915, 1)), (45, 50, (0.7819, 0.9667)), (1, 2, (0.0126, 0.9874))],
)
def test_the_interval_is_that_of_clopper_and_pearson(killed, of, interval):
    assert exact_interval(killed, of) == pytest.approx(interval, abs=1e-4)
