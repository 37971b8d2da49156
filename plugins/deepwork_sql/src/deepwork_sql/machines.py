"""Hypothesis state machines of the store on both engines."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from deepwork.api import StateStore
from deepwork.testing.machines import StoreMachine
from deepwork_sql.testing import ProjectStore, forget_sessions, shared_server


class SqliteMachine(StoreMachine):
    """Every run is of a project and a file of its own."""

    def place(self) -> Callable[[], StateStore]:
        """Make a project, and name its database in the environment."""
        self._folder = tempfile.TemporaryDirectory()
        os.environ["DEEPWORK_DATABASE_URL"] = self.url()
        forget_sessions(self.url())
        return partial(ProjectStore, Path(self._folder.name))

    def url(self) -> str:
        """Return the URL of the database."""
        return f"sqlite:///{self._folder.name}/machine.db"

    def teardown(self) -> None:
        """Close the store, and delete its folder."""
        super().teardown()
        self._folder.cleanup()


class PostgresMachine(SqliteMachine):
    """All runs use one database of the shared server, one after the other."""

    def url(self) -> str:
        """Return the URL of the database."""
        return shared_server().url
