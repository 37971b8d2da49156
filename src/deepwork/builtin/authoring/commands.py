"""The group `jobs` of this feature: its commands are added to those of the core."""

from __future__ import annotations

import click

from deepwork.builtin.authoring.check import check
from deepwork.builtin.authoring.drawing import graph, show
from deepwork.builtin.authoring.lsp_command import lsp
from deepwork.builtin.authoring.mutate import mutate
from deepwork.builtin.authoring.new import new
from deepwork.builtin.authoring.test_command import test
from deepwork.builtin.authoring.try_command import try_job


@click.group()
def jobs() -> None:
    """Write, check, try and test job files."""


for _command in (new, show, graph, check, test, try_job, mutate, lsp):
    jobs.add_command(_command)
