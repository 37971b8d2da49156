"""The page about runs says what there is, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepwork_run.cli import described, run, runs
from deepwork_run.record import Record
from deepwork_run.runner import Exit
from deepwork_run.settings import RunSettings

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "run.md").read_text()


def rows(title, column=0):
    """Return the words in backquotes in a column of the table below a heading."""
    section = re.split(r"^## ", PAGE.split(f"## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return [word for line in lines for word in re.findall(r"`([^`]+)`", line[column].lstrip("| "))]


def test_every_option_and_exit_code_is_listed():
    listed = rows("deepwork run")
    options = [option.opts[0] for option in run.params if option.param_type_name == "option"]
    assert [word for word in listed if word.startswith("--")] == [
        *("--goal", "--continue", "--with", "--allow", "--max-time", "--budget-usd", "--on-limit", "--no-wait"),
        *("--print-unit", "--path", "--json"),
    ]
    assert sorted(options) == sorted(word for word in listed if word.startswith("--"))
    assert [int(word) for word in listed if word.isdecimal()] == sorted({*map(int, Exit), 2, 3})


def test_every_command_and_key_of_runs_is_listed(project):
    listed = rows("deepwork runs")
    from deepwork.api import Workspace

    keys = described(None, Record(Workspace(project.root), "s1"))
    assert {*listed} == {*runs.commands, *keys}


@pytest.mark.parametrize("name", RunSettings.model_fields)
def test_every_setting_is_listed(name):
    assert name in rows("Agents")
