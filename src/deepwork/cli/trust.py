"""`deepwork trust`."""

from __future__ import annotations

import json
import sys

import click

from deepwork.cli.options import path_option
from deepwork.cli.terminal import Styled, say, say_text
from deepwork.errors import ConfigError
from deepwork.project.offers import list_offers
from deepwork.project.project import Project


@click.command(epilog="A repository cannot trust itself: the decision is kept in your own state folder.")
@path_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--revoke", is_flag=True, help="Withdraw every approval of this project.")
def trust(root: str, yes: bool, revoke: bool) -> None:
    """Approve this project's settings that run programs or use folders outside it.

    Shows these settings and approves exactly what they contain; when one changes, you are asked again.
    """
    project = Project(root)
    if revoke:
        for label in project.trust.revoke():
            say(f"revoked  {label}")
        return
    list_offers(project)
    requests = project.trust.refused()
    for label in project.trust.granted():
        if label not in requests:
            say(f"trusted  {label}")
    if not requests:
        say("This project has no settings that wait for approval.", err=True)
        return
    say(f"{project.workspace.root} asks for:")
    say()
    for label, content in requests.items():
        say(Styled(label, bold=True))
        say_text(content if isinstance(content, str) else json.dumps(content, indent=2), "    ")
        say()
    if not yes and not sys.stdin.isatty():
        raise ConfigError(
            "nothing was trusted: stdin is not a terminal", hint="Add --yes to approve without being asked."
        )
    if not yes:
        click.confirm("Trust exactly this?", abort=True)
    project.trust.grant(requests)
    say("Trusted. `deepwork trust --revoke` withdraws this. Running servers read their settings at the next start.")
