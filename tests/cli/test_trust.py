"""What a repository asks for waits for its user, and is asked again when it changes."""

import json
import os
from pathlib import Path

import pytest

from deepwork.server import create_server

ROOTS = "allowed_output_roots: [/outside]\n"
LABEL = "setting allowed_output_roots"


@pytest.fixture
def config(project):
    return lambda text: project.write(".deepwork/config.yml", text)


def test_what_a_project_asks_for_is_shown_and_trusted_only_on_demand(run, config):
    config(ROOTS)
    result = run("trust")
    assert result.returncode == 1
    assert LABEL in result.stdout
    assert "/outside" in result.stdout
    assert "Add --yes" in result.stderr
    assert run("trust", "--yes").returncode == 0
    again = run("trust")
    assert (again.returncode, again.stdout) == (0, f"trusted  {LABEL}\n")


def test_exactly_the_content_is_trusted_and_another_is_asked_again(run, config):
    config(ROOTS)
    run("trust", "--yes")
    config("allowed_output_roots: [/elsewhere]\n")
    result = run("trust")
    assert result.returncode == 1
    assert "/elsewhere" in result.stdout


def test_trust_can_be_taken_back(run, config):
    config(ROOTS)
    run("trust", "--yes")
    assert run("trust", "--revoke").stdout == f"revoked  {LABEL}\n"
    assert run("trust").returncode == 1


def test_a_trusted_setting_takes_effect_and_an_untrusted_one_is_named_in_the_log(project, run, config, caplog):
    config(ROOTS)
    create_server(project.root)
    assert f"{LABEL} of this project has no effect until you run `deepwork trust`" in caplog.text
    caplog.clear()
    run("trust", "--yes")
    create_server(project.root)
    assert "no effect" not in caplog.text


def test_the_decision_is_kept_out_of_the_project(project, run, config):
    config(ROOTS)
    run("trust", "--yes")
    file = Path(os.environ["XDG_STATE_HOME"]) / "deepwork" / "trust.json"
    assert list(json.loads(file.read_text())) == [str(project.root)]
    assert file.stat().st_mode & 0o077 == 0


def test_a_damaged_file_of_decisions_trusts_nothing(run, config):
    config(ROOTS)
    run("trust", "--yes")
    (Path(os.environ["XDG_STATE_HOME"]) / "deepwork" / "trust.json").write_text("{")
    assert run("trust").returncode == 1


def test_a_project_that_asks_for_nothing_is_fine(run):
    result = run("trust")
    assert (result.returncode, result.stdout) == (0, "")
