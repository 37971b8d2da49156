"""Where the log goes: stderr for people, and a file of JSON lines for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deepwork.text.escape import visible, visible_lines

LEVELS = ("debug", "info", "warning", "error")


class ForPeople(logging.Formatter):
    """One visible line a record; a traceback stands below it, indented, so that nothing in it looks like a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Write the line."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """Write the traceback."""
        return "\n".join(f"  {line}" for line in visible_lines(super().formatException(ei)).split("\n"))


class JsonLines(logging.Formatter):
    """One JSON object a line; the facts of a tool call are keys of their own."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        entry = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def set_up_warnings() -> None:
    """Let what is logged before, or without, `set_up_logging` be visible too: Python prints warnings as they are."""
    if logging.lastResort:
        logging.lastResort.setFormatter(ForPeople("%(message)s"))


def set_up_logging(level: str, json_file: Path | None = None) -> None:
    """Send our log to stderr, warnings of libraries too, and our log to a file if one is named."""
    to_people = logging.StreamHandler(sys.stderr)
    to_people.setFormatter(ForPeople("%(levelname)-7s %(name)s: %(message)s"))
    to_people.setLevel(level.upper())
    root = logging.getLogger()
    root.handlers = [to_people]
    root.setLevel("WARNING")
    logging.getLogger("deepwork").setLevel("INFO" if json_file and level in ("warning", "error") else level.upper())
    if json_file:
        to_programs = logging.FileHandler(json_file, encoding="utf-8", delay=False)
        to_programs.setFormatter(JsonLines())
        root.addHandler(to_programs)
