"""What counts as red."""

from __future__ import annotations

import pytest

from deepwork.builtin.proofs.red import RULES, doubt
from deepwork.models.reviews import NeedsWork


def refusal(words, code=1):
    return NeedsWork(f"The program ended with code {code}.\n\nstdout:\n{words}", exit_code=code)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.example)
def test_every_rule_knows_its_example(rule):
    assert doubt(refusal(f"before\n{rule.example}\nafter"), ["a.md"]) == rule.why


@pytest.mark.parametrize(
    "words",
    [
        "Traceback (most recent call last):\nAssertionError",
        "1 failed, 3 passed in 0.1s",
        "a.md:3: error: no newline",
        "cat: a.md: No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: 'docs/a.md'",
        "E902 No such file or directory (os error 2)\n --> docs/a.md:1:1",
        "# tests 10\n# fail 1",
        "",
    ],
)
def test_what_is_about_the_work_is_red(words):
    assert doubt(refusal(words), ["docs/a.md"]) is None


@pytest.mark.parametrize(
    ("code", "why"), [(126, "it could not run"), (127, "it could not run"), (137, "it crashed"), (139, "it crashed")]
)
def test_codes_of_a_shell_for_what_did_not_end_by_itself_are_not_red(code, why):
    assert doubt(refusal("", code), ["a.md"]) == why


@pytest.mark.parametrize(
    "words",
    [
        "cat: other.md: No such file or directory",
        "cat: other.md: No such file or directory\na.md: read",
        "E902 No such file or directory (os error 2)\n --> other.md:1:1",
    ],
)
def test_a_file_that_is_missing_beside_the_work_is_not_red(words):
    assert doubt(refusal(words), ["a.md"]) == "it missed another file"
