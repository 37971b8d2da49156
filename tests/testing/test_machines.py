"""The stores of the core in any order of calls, by the machine of the kit."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from hypothesis import settings

from deepwork.api import MemoryStore, Workspace
from deepwork.builtin.json_store.store import JsonStore
from deepwork.testing.machines import StoreMachine


class JsonMachine(StoreMachine):
    def place(self):
        self.folder = tempfile.TemporaryDirectory()
        return partial(JsonStore, Workspace(Path(self.folder.name).resolve()))

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


class MemoryMachine(StoreMachine):
    survives = False

    def place(self):
        return MemoryStore


TestJsonMachine = JsonMachine.TestCase
TestJsonMachine.settings = settings(max_examples=15, stateful_step_count=15)
TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=15, stateful_step_count=15)
