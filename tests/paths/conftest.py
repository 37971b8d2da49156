"""A project with a file, and a secret beside it."""

from __future__ import annotations

import stat

import pytest

from deepwork.paths.folder import Folder


@pytest.fixture
def root(tmp_path):
    """A project with a file, and something secret beside it."""
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "file.md").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.md").write_text("secret")
    return root


@pytest.fixture
def outside(root):
    return root.parent / "outside"


@pytest.fixture
def folder(root):
    with Folder.open(root, inside=root) as folder:
        yield folder


@pytest.fixture
def mode():
    """Read the permissions of a file."""
    return lambda path: stat.S_IMODE(path.stat().st_mode)
