"""What the tests of the specification share: servers with the engine, or a job source, at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastmcp import FastMCP

from deepwork import hookimpl
from deepwork.api import Engine
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.server import create_server


class Probed(NamedTuple):
    """A server, and the engine that its tools hold, as a plugin gets it."""

    server: FastMCP[Any]
    engine: Engine


class Probe:
    """A plugin that offers nothing and keeps the engine that it is shown."""

    engine: Engine

    @hookimpl
    def deepwork_tool_sets(self, engine):
        self.engine = engine


def plugins_with(plugin: object) -> PluginManager:
    candidate = Candidate("probe", "probe-dist", "1.0", lambda: plugin)
    return PluginManager(candidates=[*installed(), candidate])


@pytest.fixture
def probed(project):
    """Make a server with these options, and show its engine."""

    def make(**options: Any) -> Probed:
        probe = Probe()
        server = create_server(project.root, plugins=plugins_with(probe), **options)
        return Probed(server, probe.engine)

    return make


@pytest.fixture
def server_with_source(project):
    """Make a server that has the jobs of one more source."""

    def make(source: object) -> FastMCP[Any]:
        class Jobs:
            @hookimpl
            def deepwork_job_sources(self):
                yield source

        return create_server(project.root, plugins=plugins_with(Jobs()))

    return make


@pytest.fixture
def specification() -> Path:
    return Path(__file__).parents[2] / "docs" / "specs" / "000-workflow-tools.md"
