"""What is shown as removed and added leads from the one text to the other."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from deepwork_dashboard.differences import changes

LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"one", b"two", b"three"]), max_size=30).map(tuple)


def applied(old, new, all_changes):
    """Replace in the old lines what has changed."""
    lines, position = (), 0
    for old_line, removed, line, added in all_changes:
        lines += old[position : old_line - 1]
        assert removed == old[old_line - 1 : old_line - 1 + len(removed)]
        assert len(lines) == line - 1
        lines += new[line - 1 : line - 1 + added]
        position = old_line - 1 + len(removed)
    return lines + old[position:]


@given(LINES, LINES)
def test_the_changes_of_two_texts_lead_from_one_to_the_other(old, new):
    all_changes = changes(old, new)
    assert applied(old, new, all_changes) == new
    assert (all_changes == []) == (old == new)


@given(LINES, st.integers(0, 29))
@example((b"a", b"a", b"a"), 1)
def test_one_line_that_is_put_in_is_all_that_has_changed(old, place):
    new = (*old[:place], b"a line of its own", *old[place:])
    assert changes(old, new) == [(min(place, len(old)) + 1, (), min(place, len(old)) + 1, 1)]


def test_long_texts_that_share_nothing_unique_count_as_replaced():
    old, new = (b"x", b"y") * 5_000, (b"y", b"x", b"x") * 5_000
    assert applied(old, new, changes(old, new)) == new
