"""The places of a project: its state folder, private and out of git, and paths as they are shown."""

from __future__ import annotations

import os

import pytest

from deepwork.errors import PathRefused
from deepwork.paths.workspace import Workspace


def test_the_state_folder_is_private_and_keeps_itself_out_of_git(root, mode):
    Workspace(root).prepare_state_dir()
    assert mode(root / ".deepwork" / "tmp") == 0o700
    assert (root / ".deepwork" / "tmp" / ".gitignore").read_text() == "*\n"
    assert mode(root / ".deepwork" / "tmp" / ".gitignore") == 0o600


def test_a_state_folder_that_was_open_to_others_is_made_private(root, mode):
    (root / ".deepwork" / "tmp").mkdir(parents=True, mode=0o755)
    Workspace(root).prepare_state_dir()
    assert mode(root / ".deepwork" / "tmp") == 0o700


def test_a_gitignore_that_would_let_sessions_into_a_commit_is_replaced(root):
    (root / ".deepwork" / "tmp").mkdir(parents=True)
    (root / ".deepwork" / "tmp" / ".gitignore").write_text("!*\n")
    Workspace(root).prepare_state_dir()
    assert (root / ".deepwork" / "tmp" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("link", [".deepwork", ".deepwork/tmp"])
def test_a_state_folder_that_is_a_link_out_of_the_project_is_refused_and_nothing_is_made_there(root, outside, link):
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(outside)
    with pytest.raises(PathRefused) as error:
        Workspace(root).prepare_state_dir()
    assert error.value.message == "the folder '.deepwork/tmp' lies outside of the project"
    assert os.listdir(outside) == ["file.md"]


def test_a_state_folder_that_is_a_link_inside_of_the_project_is_used(root):
    (root / ".deepwork").mkdir()
    (root / ".deepwork" / "tmp").symlink_to("../sub")
    Workspace(root).prepare_state_dir()
    assert (root / "sub" / ".gitignore").exists()


def test_paths_are_shown_relative_to_the_project_where_they_lie_in_it(root, outside):
    workspace = Workspace(root, (outside,))
    assert workspace.shown(root / "sub" / "file.md") == "sub/file.md"
    assert workspace.shown(outside / "file.md") == str(outside / "file.md")
    assert workspace.output_roots == (root, outside)
