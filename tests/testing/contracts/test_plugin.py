"""The features that ship with the core, by the kit and nothing weaker: those with a `plugin.py` in its own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from deepwork.loading.features import FEATURES
from deepwork.testing import PluginContract

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("name", FEATURES)
def test_every_builtin_plugin_has_its_contract(name):
    contract = f'(PluginContract):\n    plugin = "{name}"\n'
    assert [file for file in TESTS.rglob("test_*.py") if contract in file.read_text()] != []


class TestProofsPlugin(PluginContract):
    plugin = "proofs"


class TestAuthoringPlugin(PluginContract):
    plugin = "authoring"


class TestUpkeepPlugin(PluginContract):
    plugin = "upkeep"


class TestLocalJobsPlugin(PluginContract):
    plugin = "local_jobs"


class TestMemoryStorePlugin(PluginContract):
    plugin = "memory_store"
