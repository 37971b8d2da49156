"""`deepwork trust`."""

from __future__ import annotations

import json
import sys

import click

from deepwork.cli.project import path_option
from deepwork.cli.terminal import Styled, say, say_text
from deepwork.errors import ConfigError
from deepwork.house import House


@click.command(epilog="A repository cannot trust itself: the decision is kept in your own state folder.")
@path_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--revoke", is_flag=True, help="Trust nothing of this project any more.")
def trust(root: str, yes: bool, revoke: bool) -> None:
    """Let a project do what could run programs or reach outside of it.

    Shows what the project asks for and trusts exactly that; when it changes, you are asked again.
    """
    decisions = House(root).trust
    if revoke:
        for label in decisions.revoke():
            say(f"revoked  {label}")
        return
    decisions.forget_refusals("setting ")
    house = House(root)
    house.offers()
    asked = house.trust.refused()
    for label in house.trust.granted():
        if label not in asked:
            say(f"trusted  {label}")
    if not asked:
        say("This project asks for nothing that is not trusted.", err=True)
        return
    say(f"{house.workspace.root} asks for:")
    say()
    for label, content in asked.items():
        shown = content if isinstance(content, str) else json.dumps(content, indent=2)
        say(Styled(label, bold=True))
        say_text(shown, "    ")
        say()
    if not yes and not sys.stdin.isatty():
        raise ConfigError("nothing was trusted: nobody is there to be asked", hint="Add --yes if you mean it.")
    if not yes:
        click.confirm("Trust exactly this?", abort=True)
    house.trust.grant(asked)
    say(f"Trusted. `deepwork trust --revoke` takes it back.{_restart()}")


def _restart() -> str:
    return " Servers that are running take settings at their next start."
