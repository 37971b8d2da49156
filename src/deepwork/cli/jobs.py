"""`deepwork jobs`, whose commands are those of features."""

from __future__ import annotations

import click

from deepwork.cli.extended import ExtendedGroup


@click.group(cls=ExtendedGroup, epilog="Example: deepwork jobs check .deepwork/jobs/my_job")
def jobs() -> None:
    """List, write, check, try and test job files."""
