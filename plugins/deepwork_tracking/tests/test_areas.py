from __future__ import annotations

import pytest

from deepwork_tracking.areas import files_outside


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("src/auth/login.py", "auth"),
        ("src/Auth/login.py", "aUTH"),
        ("src/auth.py", "auth"),
        ("src/auth/login.py", "src/auth"),
        ("src/auth/login.py", "./src/"),
        ("src/auth/login.py", "/src/auth/login.py"),
        ("src/auth/login.py", "login.py"),
        ("src/auth/login.py", "*.py"),
        ("src/auth/login.py", "src/**/*.py"),
        ("src/auth/login.py", "log[io]n.*"),
        ("a/b/c/d.md", "a/*/c/**"),
        ("Makefile", "makefile"),
    ],
)
def test_a_file_is_inside_of_an_area_by_segment_stem_prefix_or_glob(path, area):
    assert files_outside([path], [area]) == []


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("src/authors.py", "auth"),
        ("src/oauth/login.py", "auth"),
        ("docs/src/auth/x.md", "src/auth"),
        ("src/authentic/x.py", "src/auth"),
        ("lib/login.py", "src/*.py"),
        ("login.pyc", "*.py"),
        ("a.md", ""),
        ("a.md", "!b.md"),
        ("a.md", "#*"),
    ],
)
def test_a_file_is_outside_of_an_area_whose_text_it_only_contains(path, area):
    assert files_outside([path], [area]) == [path]


def test_without_areas_no_file_is_outside():
    assert files_outside(["a", "b"], []) == []


def test_a_file_needs_to_be_inside_of_one_area_only():
    assert files_outside(["docs/a.md", "src/a.py", "x"], ["docs", "*.py"]) == ["x"]
