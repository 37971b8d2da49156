"""Every numbered clause of the specification has a test that names it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

# Clauses that are shown elsewhere would stand here until their tests come.
SHOWN_WITH_EXTERNAL_REVIEWERS: set[str] = set()


def clauses(text: str) -> dict[str, str]:
    """Find the numbered clauses under the headings of the specification: id to text."""
    clauses_by_id: dict[str, str] = {}
    section = None
    for line in text.splitlines():
        if heading := re.match(r"#{1,3} (?:(JOBS-REQ-\d+\.\d+):)?", line):
            section = heading[1]
        elif section and (clause := re.match(r"(\d+)\. (.+)", line)):
            clauses_by_id[f"{section}.{clause[1]}"] = clause[2]
    return clauses_by_id


def marked(folder: Path) -> dict[str, list[str]]:
    """Find the clauses that tests name with the marker `req`, without running anything: clause to tests."""
    tests_of: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for clause in _marks(node):
                    tests_of.setdefault(clause, []).append(f"{file.name}::{node.name}")
    return tests_of


def gaps(numbered: set[str], tests: dict[str, list[str]], elsewhere: set[str]) -> list[str]:
    """Return the mismatches between the clauses, the tests that name them, and the clauses shown elsewhere."""
    return [
        *(f"{clause} has no test" for clause in sorted(numbered - set(tests) - elsewhere)),
        *(f"{clause} is listed as shown elsewhere, has {tests[clause]}" for clause in sorted(elsewhere & set(tests))),
        *(f"{clause} is no clause, but has {tests[clause]}" for clause in sorted(set(tests) - numbered)),
        *(f"{clause} is listed as shown elsewhere and is no clause" for clause in sorted(elsewhere - numbered)),
    ]


def _marks(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    calls = [decorator for decorator in test.decorator_list if isinstance(decorator, ast.Call)]
    return [
        ast.literal_eval(argument)
        for call in calls
        if ast.unparse(call.func) == "pytest.mark.req"
        for argument in call.args
    ]


def test_every_clause_is_named_by_a_test(specification):
    mismatches = gaps(
        set(clauses(specification.read_text())), marked(Path(__file__).parent), SHOWN_WITH_EXTERNAL_REVIEWERS
    )
    assert mismatches == []


def test_all_clauses_of_the_specification_are_found(specification):
    by_id = clauses(specification.read_text())
    counts = Counter(clause.rpartition(".")[0].removeprefix("JOBS-REQ-001.") for clause in by_id)
    assert counts == {"1": 12, "2": 8, "3": 14, "4": 19, "5": 8, "6": 8, "7": 2}
    assert by_id["JOBS-REQ-001.5.3"].startswith("Optional outputs")


def test_only_numbered_lines_under_a_requirement_are_clauses():
    first = "1. no\n### JOBS-REQ-001.1: A\n1. one\ntext\n#### Part\n2. two\n"
    text = f"{first}### JOBS-REQ-001.2: B\n1. three\n## End\n1. no\n"
    assert clauses(text) == {"JOBS-REQ-001.1.1": "one", "JOBS-REQ-001.1.2": "two", "JOBS-REQ-001.2.1": "three"}


def test_a_clause_without_a_test_is_listed():
    assert gaps({"A.1", "A.2"}, {"A.1": ["t"]}, set()) == ["A.2 has no test"]


def test_a_clause_shown_elsewhere_needs_no_test():
    assert gaps({"A.1", "A.2"}, {"A.1": ["t"]}, {"A.2"}) == []


def test_a_clause_shown_elsewhere_that_has_a_test_is_listed():
    assert gaps({"A.1"}, {"A.1": ["t"]}, {"A.1"}) == ["A.1 is listed as shown elsewhere, has ['t']"]


def test_a_marker_for_something_that_is_no_clause_is_listed():
    assert gaps(set(), {"A.9": ["t"]}, set()) == ["A.9 is no clause, but has ['t']"]


def test_a_clause_shown_elsewhere_that_does_not_exist_is_listed():
    assert gaps(set(), {}, {"A.9"}) == ["A.9 is listed as shown elsewhere and is no clause"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_markers_are_found_on_tests_of_both_kinds(tmp_path, kind):
    mark = '@pytest.mark.req("A.1", "A.2")\n@pytest.mark.parametrize("x", [1])\n'
    (tmp_path / "test_x.py").write_text(f"{mark}{kind} test_it(x):\n    pass\n")
    assert marked(tmp_path) == {"A.1": ["test_x.py::test_it"], "A.2": ["test_x.py::test_it"]}


@pytest.mark.parametrize("text", ["# {mark}\ndef test_it(): ...", "{mark}\ndef it(): ..."])
def test_a_marker_that_no_test_carries_does_not_count(tmp_path, text):
    (tmp_path / "test_x.py").write_text(text.format(mark="@pytest.mark.req('A.1')"))
    assert marked(tmp_path) == {}
