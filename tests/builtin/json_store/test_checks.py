"""What `deepwork doctor` says of the folder of sessions."""

from __future__ import annotations

import os


def test_a_state_folder_into_which_nothing_can_be_written_is_an_error(invoke, project, monkeypatch):
    """Tests may run as root, who may always write: the folder is a place that the system refuses."""
    invoke("init")
    folder, access = project.root / ".deepwork" / "tmp", os.access
    monkeypatch.setattr("os.access", lambda path, mode, **options: path != folder and access(path, mode, **options))
    ended = invoke("doctor")
    assert ended.code == 1
    assert "nothing can be written into .deepwork/tmp, so no session can be saved" in ended.out


def test_a_folder_that_others_can_read_is_a_warning_with_its_cure(invoke, project):
    invoke("init")
    folder = project.root / ".deepwork" / "tmp"
    folder.chmod(0o755)
    ended = invoke("doctor")
    assert f"! .deepwork/tmp can be read by others\n      -> chmod 700 {folder}\n" in ended.out
    assert [line for line in ended.out.splitlines() if line.strip() == "sessions"] == ["sessions"]
