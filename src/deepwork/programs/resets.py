"""When a limit ends, by the words of the programs. Samples with their versions are in `tests/samples`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# `Claude AI usage limit reached|1762952400`
_EPOCH = re.compile(r"\|(\d{10})\b")
# `try again in 2 days 17 hours 14 minutes`, `in 11.054s`
_IN = re.compile(r"\b(?:again|resets?) in ((?:[\d.]+ ?[a-z]+,? ?(?:and )?)+)", re.IGNORECASE)
_PART = re.compile(r"([\d.]+) ?(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b", re.IGNORECASE)
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
# `resets 3pm (Europe/Berlin)`, `resets Apr 23 at 4pm (America/Recife)`, `try again at Nov 20th, 2026 3:01 PM`
_AT = re.compile(
    r"\b(?:resets?(?: at)?|again at) (?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,?"
    r"(?: (?P<year>\d{4}),?)?(?: at)? )?(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>\d\d))? ?(?P<half>[ap])\.?m\b\.?"
    r"(?: \((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Such a time has no seconds: the limit may end at the end of its minute.
_MINUTE = timedelta(minutes=1)


def reset_time(text: str, now: datetime) -> datetime | None:
    """Return when a limit ends that this text tells of; None if it names no time."""
    if match := _EPOCH.search(text):
        return datetime.fromtimestamp(int(match[1]), UTC)
    if match := _IN.search(text):
        parts = [(number, unit) for number, unit in _PART.findall(match[1]) if _is_number(number)]
        seconds = sum(float(number) * _SECONDS[unit[0].lower()] for number, unit in parts)
        return now + timedelta(seconds=seconds) if parts and seconds <= 366 * 86400 else None
    match = _AT.search(text)
    return _moment(match, now) if match else None


def _moment(match: re.Match[str], now: datetime) -> datetime | None:
    try:
        local = now.astimezone(ZoneInfo(match["zone"]) if match["zone"] else None)
        hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0)
        moment = local.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
        if match["month"]:
            month = _MONTHS.index(match["month"].lower()) + 1
            moment = moment.replace(year=int(match["year"] or local.year), month=month, day=int(match["day"]))
            if not match["year"] and moment < local - timedelta(days=180):
                moment = moment.replace(year=local.year + 1)
        elif moment + _MINUTE <= local:
            moment += timedelta(days=1)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        return None
    return (moment + _MINUTE).astimezone(UTC)


def _is_number(text: str) -> bool:
    return text.count(".") <= 1 and text.strip(".") != ""
