"""The tutorial on the first job keeps to what it promises; `test_pages.py` plays it."""

from __future__ import annotations

PAGE = "docs/tutorial/your-first-job.md"


def test_it_takes_at_most_eight_commands_and_forty_typed_lines(page):
    runs = list(page(PAGE).blocks("run"))
    typed = [line for kind in ("run", "file") for block in page(PAGE).blocks(kind) for line in block.text.splitlines()]
    assert len(runs) == 5
    assert len(typed) <= 40
