"""Which plugins are installed. Nothing is imported here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import importlib_metadata

from deepwork import __version__

GROUP = "deepwork"
BUILTINS = ("command_runner", "json_store", "local_jobs", "memory_store", "self_review", "workflow_tools")


@dataclass(frozen=True)
class Candidate:
    """A plugin that could be loaded, and where it comes from."""

    name: str
    distribution: str
    version: str
    load: Callable[[], Any]
    builtin: bool = False
    module: str = ""

    @property
    def package(self) -> str:
        """The package of its code."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        """Name the distribution first: that is what people install and remove."""
        where = f"builtin.{self.name}" if self.builtin else f"plugin {self.name!r}"
        return f"{self.distribution} {self.version} ({where})"


def installed() -> list[Candidate]:
    """List the core's own plugins, then those of the entry point group `deepwork`, sorted."""
    candidates = [
        Candidate(
            point.name, point.dist.name if point.dist else "unknown", _version(point), point.load, module=point.module
        )
        for point in importlib_metadata.entry_points(group=GROUP)
    ]
    return [*map(_builtin, BUILTINS), *sorted(candidates, key=lambda plugin: (plugin.name, plugin.distribution))]


def _builtin(name: str) -> Candidate:
    def load() -> Any:
        return import_module(f"deepwork.builtin.{name}")

    return Candidate(name, "deepwork", __version__, load, builtin=True, module=f"deepwork.builtin.{name}")


def _version(point: importlib_metadata.EntryPoint) -> str:
    return point.dist.version if point.dist else "?"
