"""When a limit ends, from the words of those who set it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deepwork.programs.resets import reset_time

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Claude AI usage limit reached|1795117874", datetime.fromtimestamp(1795117874, UTC)),
        ("You've hit your 5-hour limit · resets 7:51pm (UTC)", NOW.replace(hour=19, minute=52)),
        ("You've hit your limit · resets 3pm (Asia/Shanghai)", NOW.replace(day=20, hour=7, minute=1)),
        ("You've hit your limit · resets Nov 23 at 4pm (America/Recife)", NOW.replace(day=23, hour=19, minute=1)),
        ("You've hit your limit · resets Jan 2 at 12am (UTC)", datetime(2027, 1, 2, 0, 1, tzinfo=UTC)),
        ("or try again in 2 days 17 hours 14 minutes.", NOW + timedelta(days=2, hours=17, minutes=14)),
        ("Please try again in 11.054s.", NOW + timedelta(seconds=11.054)),
        ("You've hit your limit · resets 3pm (Nowhere/Land)", None),
        ("You've hit your limit · resets Feb 31 at 4pm (UTC)", None),
        ("You've hit your limit · resets 99pm (UTC)", None),
        ("try again in 9999999999999999999999 days", None),
        ("try again in . s", None),
        ("try again later", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_its_words(text, expected):
    assert reset_time(text, NOW) == expected


def test_a_time_of_codex_is_that_of_this_machine(monkeypatch):
    local = NOW.astimezone()
    text = f"try again at {local + timedelta(hours=1):%-I:%M %p}."
    assert reset_time(text, NOW) == NOW + timedelta(hours=1, minutes=1)
    text = f"try again at {local + timedelta(days=2):%b %-d}th, 2026 {local:%-I:%M %p}."
    assert reset_time(text, NOW) == NOW + timedelta(days=2, minutes=1)
