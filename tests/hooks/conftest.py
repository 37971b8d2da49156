from __future__ import annotations

import os
from pathlib import Path

import pytest

from deepwork.config import load_config
from deepwork.house import load_plugins
from deepwork.loading.contexts import contexts
from deepwork.ports.shared import SharedObjects

DISTS = Path(__file__).parent.parent / "data" / "dists"


@pytest.fixture
def ask(project, monkeypatch):
    """Install fake distributions, and collect what all plugins give to one hook."""

    def ask(hook, *dists, **arguments):
        for name in dists:
            monkeypatch.syspath_prepend(str(DISTS / name))
        loaded = load_config(project.root, os.environ)
        return getattr(load_plugins(loaded.config, os.environ), hook)(contexts(loaded, SharedObjects()), **arguments)

    return ask
