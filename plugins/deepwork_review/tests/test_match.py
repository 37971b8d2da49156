from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwork_review import match
from deepwork_review.match import Matcher, refuse_glob

MATCHES = [
    ("*.py", "a.py", True),
    ("*.py", "src/a.py", False),
    ("**/*.py", "a.py", True),
    ("**/*.py", "src/deep/a.py", True),
    ("src/**", "src/a/b", True),
    ("src/**", "src2/a", False),
    ("**", "a/b/c", True),
    ("**.py", "a.py", True),
    ("**.py", "src/deep/a.py", True),
    ("src/**_test.py", "src/x/y/a_test.py", True),
    ("src/**_test.py", "x/a_test.py", False),
    ("?.py", "a.py", True),
    ("?.py", "ab.py", False),
    ("a?b", "a/b", False),
    ("[ab].py", "b.py", True),
    ("[!ab].py", "b.py", False),
    ("[a-c]*/x", "box/x", True),
    ("*.{ts,tsx}", "a.tsx", True),
    ("{src,lib}/**/*.py", "lib/x/a.py", True),
    ("/src/*.py", "src/a.py", True),
    ("./src/*.py", "src/a.py", True),
    ("*", ".hidden", True),
    ("**/x", ".hidden/x", True),
    ("*.PY", "a.py", False),
    ("!a", "b", False),
    ("!a", "!a", True),
    ("-a|b", "-a|b", True),
    ("~/x", "~/x", True),
    ("a b/日*", "a b/日本", True),
    ("*.py", "new\nline.py", True),
    ("*.py", "caf\udce9.py", True),
    ("*.py", "a.py\n", False),
]


@pytest.mark.parametrize(("glob", "path", "expected"), MATCHES)
def test_globs(glob, path, expected):
    assert Matcher("", [refuse_glob(glob)]).matches(path) is expected
    assert Matcher("some/folder", [refuse_glob(glob)]).matches(f"some/folder/{path}") is expected


def test_globs_begin_in_the_folder_of_their_file():
    matcher = Matcher("src/a", ["*.py"])
    assert matcher.select(["src/a-x.py", "src/a.py", "src/a/b/x.py", "src/a/x.py", "src/ab/x.py", "x.py"]) == [
        "src/a/x.py"
    ]


def test_excludes_win():
    matcher = Matcher("", ["**/*.py"], ["gen/**", "**/*_pb2.py"])
    assert matcher.select(["a.py", "b/a_pb2.py", "gen/x/a.py"]) == ["a.py"]


@pytest.mark.parametrize(
    ("glob", "problem"),
    [
        ("", "names no file"),
        ("/", "names no file"),
        ("a" * 257, "has more than 256 characters"),
        ("**/a/**/b/**/c/**/d/**", "has more than 4 '**'; write it as several globs"),
        ("{1..1000000}", "has braces for more than 64 globs; write it as several"),
        ("{a,b}" * 7, "has braces for more than 64 globs; write it as several"),
    ],
)
def test_globs_without_a_bound_are_refused(glob, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        refuse_glob(glob)


HOSTILE = [
    ("**/" * 20 + "b", "/".join(["a"] * 200)),
    ("*a" * 80 + "b", "a" * 255),
    ("*a" * 14 + "b", "a" * 30),
    ("**/a/" * 4 + "b", "/".join(["a"] * 200)),
    ("**/a/" * 2 + "b", "/".join(["a"] * 2000)),
    ("**/*a*a*a*b/" * 3 + "b", "/".join(["a" * 60] * 60)),
    ("{**/a,**/b,**/c,**/d}/x", "/".join(["a"] * 500)),
    ("[a-z]*" * 40, "a" * 255),
    ("?*" * 100 + "b", "a" * 255),
]


@pytest.mark.parametrize(("glob", "path"), HOSTILE)
def test_no_glob_takes_long(glob, path):
    matcher = Matcher("", [refuse_glob(glob)])
    started = time.process_time()
    matcher.matches(path)
    assert time.process_time() - started < 5  # generous, for busy machines


def test_a_path_on_which_a_glob_would_take_long_counts_as_matching_with_a_reason():
    matcher = Matcher("", ["**/a/" * 4 + "b"])
    assert not matcher.matches("a/a/a/a/a/a/c")
    assert matcher.gave_up is None
    assert matcher.matches("/".join(["a"] * 200))
    assert matcher.gave_up == "its globs could take too long on very deep paths"


def test_a_path_on_which_an_excluding_glob_would_take_long_counts_as_matching_with_a_reason():
    matcher = Matcher("", ["**"], ["**/a/" * 4 + "b"])
    assert not matcher.matches("a/a/a/a/b")
    assert matcher.gave_up is None
    assert matcher.matches("/".join(["a"] * 200))
    assert matcher.gave_up == "its globs could take too long on very deep paths"


def test_a_rule_that_has_used_up_its_time_counts_as_matching(monkeypatch):
    monkeypatch.setattr(match, "MAX_SECONDS", 0.0)
    matcher = Matcher("", ["*.py"])
    paths = [f"{number:03}.md" for number in range(100)]
    assert matcher.select(paths) == paths[match.BATCH :]
    assert matcher.gave_up == "its globs, or those of all rules, took longer than 0 s"


NAMES = st.text(alphabet="ab.*?[]{},!-\\/", min_size=1, max_size=20)


@given(NAMES, st.text(alphabet="ab./", min_size=1, max_size=12))
def test_no_glob_makes_an_error(glob, path):
    try:
        accepted = refuse_glob(glob)
    except ValueError:
        return
    Matcher("", [accepted]).matches(path)
