"""Lines of a text are found in its later versions: never a wrong one, and nearly all that are still there."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from deepwork.sessions.lines import Place, found, held, lines_of, moves, replaced

sys.path.append(str(Path(__file__).parent))

from edited_text import EditedText


def encoded(version):
    return [text.encode() for _, text in version]


def test_no_comment_stands_on_a_wrong_line_and_at_least_95_percent_stay_on_theirs():
    survived = placed = 0
    misplaced = []
    for seed in range(24):
        dice = random.Random(seed)
        text = EditedText(dice, dice.randint(50, 400))
        for _ in range(4):
            text.edit((0.01, 0.03, 0.06)[seed % 3])
        versions = [*map(encoded, text.versions)]
        steps = [moves(old, new) for old, new in pairwise(versions)]
        for start, version in enumerate(text.versions[:-1]):
            for index in range(0, len(version), 3):
                lines = version[index : index + dice.choice([1, 1, 2, 4])]
                place = Place(index + 1, index + len(lines))
                for step in steps[start:]:
                    place = place and step.same(place)
                true = text.where([number for number, _ in lines], [line for _, line in lines])
                survived += true is not None
                placed += place is not None and place.line == true
                if place and place.line != true:
                    misplaced.append((seed, start, index, place, true))
    assert misplaced == []
    assert placed >= 0.95 * survived


@pytest.mark.parametrize(
    ("old", "new", "place", "moved"),
    [
        ("a b c", "a b c", (2, 2), (2, 2)),
        ("a b c", "x a b c", (2, 3), (3, 4)),
        ("a b c d", "a b x c d", (2, 3), None),  # they no longer stand together
        ("a } } z", "a } z", (2, 2), None),  # which of the two was removed?
        ("a } z", "a } } z", (2, 2), None),
        ("a b c", "c", (2, 2), None),
        ("a", "", (1, 1), None),
    ],
)
def test_a_line_is_found_only_if_no_other_can_be_meant(old, new, place, moved):
    lines = [text.encode().split() or [b""] for text in (old, new)]
    assert moves(*lines).same(Place(*place)) == (moved and Place(*moved))


def test_what_stands_now_where_lines_were_changed_is_between_their_neighbours():
    old, new = [b"a", b"b", b"c", b"d", b"e"], [b"a", b"b", b"x", b"y", b"d", b"e"]
    between = moves(old, new)
    assert between.around(Place(3, 3)) == Place(3, 4)
    assert moves(old, [b"a", b"b", b"d", b"e"]).around(Place(3, 3)) is None


def test_without_the_content_a_comment_is_found_by_what_it_holds_on_to():
    lines = lines_of(b"1\n2\n3\n4\n5\n6\n7\n8\n")
    anchor = held(lines, Place(5, 5))
    assert found([b"0", *lines], anchor) == Place(6, 6)
    assert found(lines_of(b"2\n3\n4\nfive\n6\n7\n8\n"), anchor) is None
    assert found([*lines, *lines], anchor) is None


def test_a_text_of_a_million_equal_lines_takes_no_longer_than_one_reading():
    lines = [b"same"] * 10**6
    assert moves(lines, lines[:-1]).same(Place(5, 5)) is None


@pytest.mark.parametrize("content", ["1\n2\n3\n4\n5\n6\n7\n", "1\r\n2\r\n3\r\n", "1\n2\n3", "1", "\n", "1\n\n\n3\n"])
@pytest.mark.parametrize("text", ["", "x", "x\ny", "x\n", "\n"])
def test_a_suggestion_applies_as_a_diff(tmp_path, content, text):
    count = len(lines_of(content.encode()))
    for first in range(1, count + 1):
        for last in range(first, count + 1):
            folder = tmp_path / f"{first}-{last}"
            file = folder / "sub" / "a b.txt"
            file.parent.mkdir(parents=True)
            file.write_bytes(content.encode())
            diff = replaced("sub/a b.txt", content.encode(), Place(first, last), text)
            applied = subprocess.run(
                ["git", "apply", "--whitespace=nowarn", "-"], input=diff.encode(), cwd=folder, capture_output=True
            )
            assert applied.returncode == 0, (diff, applied.stderr)
            expected = [*lines_of(content.encode())]
            ending = b"\r" if "\r" in content else b""
            new = [line + ending for line in text.removesuffix("\n").encode().split(b"\n")] if text else []
            expected[first - 1 : last] = new
            if not file.exists():  # git removes a file that has become empty
                assert expected == []
                continue
            result = file.read_bytes()
            assert [line.rstrip(b"\r") for line in lines_of(result)] == [line.rstrip(b"\r") for line in expected] or (
                not result and expected in ([], [b""])
            )
