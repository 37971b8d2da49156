"""`deepwork gate`, whose commands are those of features."""

from __future__ import annotations

import click

from deepwork.cli.extended import ExtendedGroup


@click.group(cls=ExtendedGroup, epilog="Example: deepwork gate try my_job write --file report.md")
def gate() -> None:
    """Show what was reviewed and why, and try a step's reviews on files."""
