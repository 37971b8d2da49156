"""Logging: to stderr for people, and to a file of JSON lines for programs."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deepwork.text import visible, visible_lines

LEVELS = ("debug", "info", "warning", "error")


class ForPeople(logging.Formatter):
    """One escaped line a record. A traceback follows indented, so that none of its lines looks like a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Format the line."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """Format the traceback."""
        return "\n".join(f"  {line}" for line in visible_lines(super().formatException(ei)).split("\n"))


class JsonLines(logging.Formatter):
    """One JSON object a line, in ASCII, so that every reader finds the same lines; facts of a call are keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        entry = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_warnings() -> None:
    """Escape what is logged without `set_up_logging` too; Python would print it unchanged."""
    if logging.lastResort:
        logging.lastResort.setFormatter(ForPeople("%(message)s"))


def set_up_logging(level: str, json_file: Path | None = None) -> None:
    """Log to stderr, libraries from level warning on, and to a file of JSON lines if one is named."""
    for_people = logging.StreamHandler(sys.stderr)
    for_people.setFormatter(ForPeople("%(levelname)-7s %(name)s: %(message)s"))
    for_people.setLevel(level.upper())
    root = logging.getLogger()
    root.handlers = [for_people]
    root.setLevel("WARNING")
    logging.getLogger("deepwork").setLevel("INFO" if json_file and level in ("warning", "error") else level.upper())
    if json_file:
        # For its owner only: it names sessions, and what agents call.
        os.close(os.open(json_file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for_programs = logging.FileHandler(json_file, encoding="utf-8", delay=False)
        for_programs.setFormatter(JsonLines())
        root.addHandler(for_programs)
