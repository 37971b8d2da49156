from __future__ import annotations

from pathlib import Path

import pytest

from deepwork.project.project import Project

DISTS = Path(__file__).parent.parent / "data" / "dists"


@pytest.fixture
def ask(project, monkeypatch):
    """Install fake distributions, and collect what all plugins give to one hook."""

    def ask(hook, *dists, **arguments):
        for name in dists:
            monkeypatch.syspath_prepend(str(DISTS / name))
        answers = getattr(Project(project.root), hook)
        return (answers(**arguments) if arguments else answers).demand()

    return ask
