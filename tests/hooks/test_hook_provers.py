"""What tries gates on broken work: one of all plugins."""

from __future__ import annotations

import pytest

from deepwork import hookimpl
from deepwork.errors import NameClash
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.ports.proofs import Prover


class Untiring(Prover):
    async def prove(self, trials):
        return []

    async def refused(self, trials):
        pass

    def weak(self):
        return {}


class Proving:
    @hookimpl
    def deepwork_provers(self, context):
        yield Untiring()


def test_two_provers_are_refused_with_both_and_the_line_that_keeps_one(reviewed):
    plugins = PluginManager(candidates=[*installed(), Candidate("one", "deepwork-one", "1.0", Proving)])
    with pytest.raises(NameClash) as error:
        reviewed.server(plugins=plugins)
    assert "prover 'quality_gate.prove' is offered twice" in error.value.message
    assert "plugin 'one'" in error.value.message
    assert "feature 'proofs'" in error.value.message
    assert "add 'proofs' or 'deepwork-one' to `plugins.block`" in error.value.hint
