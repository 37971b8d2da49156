"""`deepwork trust`."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable

import click

from deepwork.commands.options import path_option
from deepwork.commands.terminal import Styled, say, say_text
from deepwork.errors import ConfigError
from deepwork.project.offers import list_offers
from deepwork.project.project import Project
from deepwork.project.trust import Trust, TrustRequest

MAX_LINES = 400
MAX_ASKED = 200


@click.command(epilog="A repository cannot trust itself: the decision is kept in your own state folder.")
@path_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--revoke", is_flag=True, help="Withdraw every approval of this project.")
def trust(root: str, yes: bool, revoke: bool) -> None:
    """Approve this project's settings and commands that run programs or use folders outside it.

    Shows each with the files of the project that it runs, or what has changed since you approved it, and asks one by
    one. Exactly what was shown is approved; when any of it changes, you are asked again.
    """
    project = Project(root)
    if revoke:
        for label in project.trust.revoke():
            say(f"revoked  {label}")
        return
    list_offers(project)
    for label, reason in project.unusable_commands().items():
        say(f"cannot run  {label}: {reason}", err=True)
    requests = project.trust_requests()
    labels = {request.label for request in requests}
    for label in project.trust.granted():
        if label not in labels:
            say(f"trusted  {label}")
    if not requests:
        say("This project has nothing that waits for approval.", err=True)
        return
    say(f"{project.workspace.root} asks for:")
    approved = _approved(requests[:MAX_ASKED], project.trust, asks=not yes and sys.stdin.isatty())
    if len(requests) > MAX_ASKED:
        say(f"{len(requests) - MAX_ASKED:,} more are not shown; call again for them.", err=True)
    if not yes and not sys.stdin.isatty():
        raise ConfigError(
            "nothing was trusted: stdin is not a terminal", hint="Add --yes to approve without being asked."
        )
    project.trust.grant(approved)
    say(f"Trusted: {len(approved)} of {len(requests)}. `deepwork trust --revoke` withdraws all.")
    say("Commands take effect at once, settings when a server is started again.")


def _approved(requests: Iterable[TrustRequest], trust: Trust, *, asks: bool) -> list[TrustRequest]:
    """Show every request, and ask for each."""
    approved = []
    for request in requests:
        say()
        say(Styled(request.label, bold=True))
        say_text("\n".join(_lines(request, trust.shown_before(request.label))), "    ")
        if not asks or click.confirm("Trust exactly this?"):
            approved.append(request)
    say()
    return approved


def _lines(request: TrustRequest, before: str | None) -> list[str]:
    """Return the lines of a request, or their difference from the text that was trusted before."""
    lines = request.shown.splitlines()
    if before is not None and max(len(lines), before.count("\n")) <= MAX_LINES:
        lines = [*difflib.unified_diff(before.splitlines(), lines, "trusted before", "now", lineterm="")]
    elif before is not None:
        lines = ["(trusted before with other content)", *lines]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"… and {len(lines) - MAX_LINES:,} more lines: look at the files themselves"]
    return lines
