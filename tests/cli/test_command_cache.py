"""The root's help lists the commands of plugins without importing them again, and never shows what is no longer so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deepwork.cli.main import COMMANDS

DISTS = Path(__file__).parents[1] / "data" / "dists"


def test_every_summary_is_the_first_paragraph_of_its_command():
    for spec in COMMANDS.values():
        assert spec.summary == " ".join(spec.load().help.split("\n\n")[0].split())


@pytest.fixture
def editable(tmp_path, monkeypatch):
    """A plugin whose module is changed without a new installation."""
    shutil.copytree(DISTS / "commands", tmp_path / "dist")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "dist"))
    return tmp_path / "dist" / "acme_commands" / "__init__.py"


def test_a_second_help_imports_no_plugin_and_shows_the_same(run, editable):
    editable.write_text(f"import sys\nprint('imported', file=sys.stderr)\n{editable.read_text()}")
    first, second = run("--help"), run("--help")
    assert "imported" in first.stderr
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert "  crash  " in second.stdout


def test_a_module_that_has_changed_is_read_again(run, editable):
    run("--help")
    editable.write_text(editable.read_text().replace("Raise an unexpected error", "Raise another error"))
    assert "Raise another error" in run("--help").stdout


def test_a_blocked_plugin_and_one_that_is_gone_are_not_shown(run, editable, project, monkeypatch):
    assert "  crash  " in run("--help").stdout
    project.write(".deepwork/config.yml", "plugins: {block: [deepwork-acme-commands]}\n")
    assert "  crash  " not in run("--help").stdout
    (project.root / ".deepwork/config.yml").unlink()
    monkeypatch.delenv("PYTHONPATH")
    assert "  crash  " not in run("--help").stdout


def test_a_broken_plugin_is_complained_of_each_time(run, install):
    install("commands", "importerror")
    assert "a_module_that_nobody_has" in run("--help").stderr
    assert "a_module_that_nobody_has" in run("--help").stderr
