"""`deepwork demo`, as its user sees it."""

from __future__ import annotations

import os

import pytest

from deepwork.builtin.demo import acts, command


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A home and a folder for temporary files, both empty."""
    folders = {name: tmp_path / name for name in ("home", "temporary")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(folders["temporary"]))
    monkeypatch.setenv("HOME", str(folders["home"]))
    return folders


def test_three_acts_are_played_and_nothing_is_left(run, places, project):
    before = sorted(project.root.rglob("*"))
    ended = run("demo", XDG_STATE_HOME=str(places["home"] / "state"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "file not found at 'tour/notes.md'" in ended.stdout
    assert ended.stdout.index("killed (SIGKILL)") < ended.stdout.index("# Resume project_tour/write_tour")
    assert ended.stdout.index("does not say how to try the project") < ended.stdout.index("workflow_complete")
    assert [list(folder.iterdir()) for folder in places.values()] == [[], []]
    assert sorted(project.root.rglob("*")) == before


def test_an_act_that_does_not_show_what_it_should_ends_with_1(invoke, places, monkeypatch):
    monkeypatch.setattr(acts.ScriptedAgent, "write", lambda *_: None)  # so the step is refused again
    ended = invoke("demo")
    assert ended.code == 1
    assert "the reply is next_step, not refused" in ended.err
    assert os.listdir(places["temporary"]) == []


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_an_error_and_not_a_wait(invoke, places, monkeypatch):
    monkeypatch.setattr(acts, "SERVER", "import time; time.sleep(60)")
    monkeypatch.setattr(command, "SECONDS", 3)
    ended = invoke("demo")
    assert (ended.code, ended.err.partition(":")[0]) == (1, "Error")
    assert "the server did not answer" in ended.err
    assert os.listdir(places["temporary"]) == []


@pytest.mark.slow
def test_a_gate_that_lets_everything_pass_is_seen(invoke, places, monkeypatch):
    monkeypatch.setattr(command, "GATE", "")
    ended = invoke("demo")
    assert ended.code == 1
    assert "the reply is needs_work, not workflow_complete" in ended.err
