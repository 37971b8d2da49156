from __future__ import annotations

import pytest

from deepwork import hookimpl
from deepwork.api import open_project
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.ports.records import ClaimKeeper

pytestmark = pytest.mark.anyio


async def nothing(*_):
    return ()


class Keeping:
    @hookimpl
    def deepwork_claims(self, context):
        yield ClaimKeeper(name="acme", seconds=30, held=nothing, renew=nothing, release=nothing)


async def test_a_command_finds_what_keeps_claims_in_an_opened_project(project, monkeypatch):
    core = [candidate for candidate in installed() if candidate.builtin]
    plugins = PluginManager(candidates=[*core, Candidate("one", "deepwork-one", "1.0", Keeping)])
    monkeypatch.setattr("deepwork.project.project.load_plugins", lambda *_, **__: plugins)
    async with open_project("one", project.root) as opened:
        assert [(keeper.name, keeper.seconds) for keeper in opened.claims] == [("acme", 30)]
