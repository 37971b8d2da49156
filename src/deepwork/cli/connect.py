"""`deepwork connect`: our entry in the files of clients."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import click

from deepwork.cli.options import path_option
from deepwork.cli.terminal import say, say_text
from deepwork.clients.claude_plugin import write_plugin
from deepwork.clients.connection import (
    FileChange,
    Place,
    Scope,
    carry_out,
    default_scope,
    forget,
    planned,
    planned_removal,
)
from deepwork.clients.installed import installed_command
from deepwork.clients.overview import overview
from deepwork.clients.table import CLIENTS, NAME, Client
from deepwork.clients.verification import verify
from deepwork.errors import ConfigError, GitError
from deepwork.files.git import Git
from deepwork.project.config import resolve_root

PRINT = "print"


@click.command(epilog="Example: deepwork connect claude --hooks")
@click.argument("name", metavar="[CLIENT]", required=False, type=click.Choice([*CLIENTS, PRINT]))
@path_option
@click.option(
    "--scope", type=click.Choice(["project", "user"]), help="Whose file (default: the project's, if it has one)."
)
@click.option("--hooks", is_flag=True, help="Also write hooks that remind the agent (claude, codex, gemini).")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--remove", is_flag=True, help="Take out what was written.")
@click.option(
    "--plugin",
    "plugin_folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="For claude: write a plugin into a new folder instead, and change no file of the client.",
)
@click.option("--no-verify", is_flag=True, help="Do not start the server to list its tools.")
def connect(
    name: str | None,
    root: str,
    scope: Scope | None,
    hooks: bool,
    dry_run: bool,
    remove: bool,
    plugin_folder: Path | None,
    no_verify: bool,
) -> None:
    """Write the entry that starts deepwork into the file of a client, and check that it does.

    Without CLIENT it lists the clients. `print` prints the entry for any other. Of a file that exists nothing else is
    changed, and a backup lies in your state folder.
    """
    project = resolve_root(root)
    if name is None:
        _list_clients(project)
    elif name == PRINT:
        say_text(_printed(project))
    elif plugin_folder:
        _write_plugin(name, plugin_folder)
    elif remove:
        _disconnect(place_of(CLIENTS[name], project, scope), dry_run=dry_run)
    else:
        connect_client(place_of(CLIENTS[name], project, scope), hooks=hooks, dry_run=dry_run, no_verify=no_verify)


def _write_plugin(name: str, folder: Path) -> None:
    if name != "claude":
        raise ConfigError("only Claude Code has plugins that deepwork can write", hint="Leave out --plugin.")
    write_plugin(folder, installed_command(os.environ))
    say(f"written    {folder}")
    say(f"Now run: claude plugin marketplace add {folder} && claude plugin install {NAME}@{NAME}", err=True)


def connect_client(place: Place, *, hooks: bool = False, dry_run: bool = False, no_verify: bool = False) -> None:
    """Connect one client, and say what was done.

    Raises:
        ConfigError: A file cannot be changed, or the server does not start.
    """
    client = place.client
    if hooks and not client.hooks:
        raise ConfigError(f"{client.title} has no hooks that deepwork knows", hint="Leave out --hooks.")
    program = installed_command(place.environment)
    changes = planned(place, program, hooks=hooks)
    for change in changes:
        _carry_out(change, place, dry_run=dry_run, word="connected" if change.changes else "unchanged")
    if dry_run:
        return
    if not no_verify:
        command = client.entry([program, "serve", "--path", place.folder])
        verified = verify(place, client.command_of(command) or [program])
        say(f"verified   the server lists {len(verified.tools)} tools, {verified.seconds:.1f} s after its start")
    if any(_is_tracked(change, place) for change in changes):
        say(f"Note: git tracks this file, but the path in it is this machine's: {program}", err=True)
    if any(change.changes for change in changes):
        for note in _notes(place, hooks=hooks):
            say(note, err=True)


def _notes(place: Place, *, hooks: bool) -> Iterator[str]:
    client = place.client
    notes = (client.note, client.project_note if place.scope == "project" else "", client.hooks_note if hooks else "")
    yield from filter(None, notes)


def place_of(client: Client, root: Path, scope: Scope | None = None) -> Place:
    """Say where a client is to find us.

    Raises:
        ConfigError: The client has no file in projects.
    """
    if scope == "project" and not client.project_files:
        raise ConfigError(f"{client.title} has no file in projects", hint="Use --scope user.")
    return Place(client, root, scope or default_scope(client), os.environ)


def _disconnect(place: Place, *, dry_run: bool) -> None:
    changes = planned_removal(place)
    for change in changes:
        _carry_out(change, place, dry_run=dry_run, word="removed" if change.changes else "unchanged")
        if change.changes and not dry_run:
            forget(change, place)
    if not changes:
        say(f"{place.client.title} has no file here.", err=True)


def _carry_out(change: FileChange, place: Place, *, dry_run: bool, word: str) -> None:
    if dry_run and change.changes:
        say_text(_difference(change))
        return
    if change.changes:
        carry_out(change, place)
    say(f"{word:9}  {change.name}")


def _difference(change: FileChange) -> str:
    before, after = ((content or b"").decode(errors="replace") for content in (change.before, change.after))
    names = change.name, change.name if change.after is not None else "/dev/null"
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return "\n".join(lines)


def _is_tracked(change: FileChange, place: Place) -> bool:
    async def ask() -> bool:
        git = await Git.open(place.root, place.environment)
        return bool(git and await git.paths("ls-files", "-z", "--cached", "--", change.name))

    try:
        return place.scope == "project" and anyio.run(ask)
    except GitError:
        return False


def _list_clients(root: Path) -> None:
    for state in overview(root, os.environ):
        say(f"{state.client.name:14}  {state.word:9}  {state.detail}".rstrip())
    say(f"{PRINT:14}  prints the entry, for any other client")
    say("`deepwork connect NAME` connects one; - is one of which nothing is found here.", err=True)


def _printed(root: Path) -> str:
    program = installed_command(os.environ)
    entry = {"command": program, "args": ["serve", "--path", str(root)]}
    return json.dumps({"mcpServers": {NAME: entry}}, indent=2, ensure_ascii=False)
