"""A program of `PluginContract`: it loads one plugin, or all but one, and reports what that imports and starts."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import click  # noqa: F401 - the core's commands have it, so a plugin may

from deepwork import api
from deepwork.loading.discovery import installed
from deepwork.loading.manager import PluginManager


def main(name: str, blocked: str, report: str) -> None:
    """Load the plugin of this name; with `blocked` all but that instead."""
    module = None
    for public in api.__all__:  # what a plugin may have
        getattr(api, public)
    candidates = installed()
    before = set(sys.modules)
    if blocked:
        PluginManager(blocked=[blocked], candidates=candidates)
    else:
        module = next(candidate for candidate in candidates if candidate.name == name).load().__name__
    result = {
        "module": module,
        "modules": sorted(set(sys.modules) - before),
        "threads": [thread.name for thread in threading.enumerate()[1:]],
    }
    Path(report).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
