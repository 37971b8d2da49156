from __future__ import annotations

from click.testing import CliRunner

from deepwork_acme.commands import command


def test_it_greets_whom_it_is_told() -> None:
    assert CliRunner().invoke(command, ["Ada"]).output == "Hello, Ada!\n"
