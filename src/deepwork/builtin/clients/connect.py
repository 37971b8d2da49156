"""`deepwork connect`: our entry in the files of clients."""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import click

from deepwork.api import project_at
from deepwork.builtin.clients.claude_plugin import write_plugin
from deepwork.builtin.clients.connection import FileChange, carry_out, planned
from deepwork.builtin.clients.entries import EntryChange
from deepwork.builtin.clients.hook_entries import PLUGIN_SERVER
from deepwork.builtin.clients.installed import hook_server, installed_command
from deepwork.builtin.clients.overview import overview
from deepwork.builtin.clients.places import Place, Scope, default_scope
from deepwork.builtin.clients.removal import carry_out_removal, planned_removal, project_elsewhere
from deepwork.builtin.clients.table import CLIENTS, NAME, Client
from deepwork.builtin.clients.verification import LATE, verify
from deepwork.commands.options import path_option
from deepwork.commands.terminal import say, say_text
from deepwork.errors import ConfigError, GitError
from deepwork.models.config import ToolsSection
from deepwork.programs.git import Git

PRINT = "print"


@click.command(epilog="Example: deepwork connect claude")
@click.argument("name", metavar="[CLIENT]", required=False, type=click.Choice([*CLIENTS, PRINT]))
@path_option
@click.option(
    "--scope", type=click.Choice(["project", "user"]), help="Whose file (default: the project's, if it has one)."
)
@click.option(
    "--hooks/--no-hooks",
    default=None,
    help="Whether to write hooks, too, which remind the agent (default: yes, for claude, codex and gemini).",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="KEY",
    help="Keep this key of the entry in a project's file, such as env; can be given more than once.",
)
@click.option("--replace", is_flag=True, help="Replace an entry that connect has not written, without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--remove", is_flag=True, help="Take out what was written.")
@click.option(
    "--plugin",
    "plugin_folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="For claude: write a plugin into a new folder instead, and change no file of the client.",
)
@click.option(
    "--transient",
    is_flag=True,
    help="Have the client start deepwork by uvx each time, with the plugins that are installed now.",
)
@click.option("--no-verify", is_flag=True, help="Do not start the server to list its tools.")
def connect(
    name: str | None,
    root: str,
    scope: Scope | None,
    hooks: bool | None,
    keep: tuple[str, ...],
    replace: bool,
    dry_run: bool,
    remove: bool,
    plugin_folder: Path | None,
    transient: bool,
    no_verify: bool,
) -> None:
    """Write the entry that starts deepwork into the file of a client, with hooks, and check that it does.

    Without CLIENT it lists the clients. `print` prints the entry for any other. Of a file that exists nothing else is
    changed, and a backup lies in your state folder. An entry of the same name that connect has not written is replaced
    only if you agree.
    """
    project = project_at(root).root
    if name is None:
        _list_clients(project)
    elif name == PRINT:
        say_text(_printed(project, transient=transient))
    elif plugin_folder:
        _write_plugin(name, plugin_folder)
    elif remove:
        _disconnect(place_of(CLIENTS[name], project, scope), dry_run=dry_run)
    else:
        options = ConnectOptions(hooks, keep, replace, dry_run, transient, no_verify)
        connect_client(place_of(CLIENTS[name], project, scope), options)


def _write_plugin(name: str, folder: Path) -> None:
    if name != "claude":
        raise ConfigError("only Claude Code has plugins that deepwork can write", hint="Leave out --plugin.")
    hooks = hook_server(CLIENTS[name], os.environ, folder, PLUGIN_SERVER)
    write_plugin(folder, installed_command(os.environ), hooks)
    say(f"written    {folder}")
    say(f"Now run: claude plugin marketplace add {folder} && claude plugin install {NAME}@{NAME}", err=True)


class ConnectOptions(NamedTuple):
    """How a client is connected.

    Attributes:
        hooks: Whether its hooks are written, too; None: if it has any.
        keep: Keys of an entry in a project's file that are kept.
        replace: Whether an entry that `connect` has not written is replaced without asking.
        dry_run: Only show what would change.
        transient: Whether the client starts deepwork by `uvx` each time.
        no_verify: Do not start the server.
    """

    hooks: bool | None = None
    keep: Collection[str] = ()
    replace: bool = False
    dry_run: bool = False
    transient: bool = False
    no_verify: bool = False


def connect_client(place: Place, options: ConnectOptions) -> None:
    """Connect one client, and say what was done.

    Raises:
        ConfigError: A file cannot be changed, the user keeps the entry that stands there, or the server does not
            start.
    """
    client = place.client
    if options.hooks and not client.hooks:
        raise ConfigError(f"{client.title} has no hooks that deepwork knows", hint="Leave out --hooks.")
    command = installed_command(place.environment, transient=options.transient)
    has_hooks = client.hooks is not None and options.hooks is not False
    changes = planned(place, command, hooks=has_hooks, keep=options.keep)
    for change in changes:
        if change.entry:
            _check_kept(change.entry, options.keep)
            _show_dropped(change.entry)
            if change.entry.needs_consent:
                _consent(change, change.entry, place, is_agreed=options.replace or options.dry_run)
    consented = any(change.entry and change.entry.needs_consent for change in changes)
    for change in changes:
        if options.dry_run and change.changes:
            say_text(_difference(change))
        else:
            _connect_file(change, place, keep=options.keep, consented=consented)
    if options.dry_run:
        return
    if not options.no_verify:
        _verify(place)
    for change in changes:
        if _is_tracked(change, place):
            say(f"Note: git tracks {change.name}, but the path in it is this machine's: {command[0]}", err=True)
            say(f"`git rm --cached {change.name}` and a line in .gitignore keep it out of commits.", err=True)
    if any(change.changes for change in changes):
        project_note = client.project_note if place.scope == "project" else ""
        for note in filter(None, (client.note, project_note, client.hooks_note if has_hooks else "")):
            say(note, err=True)


def _verify(place: Place) -> None:
    """Start the server as the client would, and say what it lists, or that it has not answered yet.

    Raises:
        ConfigError: It does not start.
    """
    entry = place.entry() or {}
    verified = verify(place, entry)
    if verified is None:
        say(f"Note: {LATE}; `deepwork doctor` starts it once more.", err=True)
        return
    tools = f"the server lists {len(verified.tools)} tools of {_served_sets(place, entry)}"
    say(
        f"verified   {tools}, about {verified.tokens:,} tokens, {verified.seconds:.1f} s after its start"
        f"{verified.without}"
    )


def _served_sets(place: Place, entry: Mapping[str, Any]) -> str:
    """Name the tool sets that a server started by an entry serves."""
    if any(word.startswith("--tools") for word in place.client.command_of(entry) or []):
        return "the sets that its entry names"
    sets = project_at(place.root).config(ToolsSection).sets
    return "every installed set" if sets is None else f"the sets {', '.join(sets)}"


def _connect_file(change: FileChange, place: Place, *, keep: Collection[str], consented: bool) -> None:
    is_replaced = bool(change.entry and change.entry.needs_consent)
    # What the user keeps counts as ours from now on, also if the file says it already.
    is_carried_out = change.changes or (change.entry is not None and bool(keep))
    backup = carry_out(change, place, consented=consented) if is_carried_out else None
    word = "replaced" if is_replaced else "connected" if change.changes else "unchanged"
    say(f"{word:9}  {change.name}")
    if is_replaced:
        say(
            f"`deepwork connect {place.client.name} --remove` brings back what was replaced; the file as it was is "
            f"{backup}",
            err=True,
        )


def _check_kept(entry: EntryChange, keep: Collection[str]) -> None:
    old = entry.old if isinstance(entry.old, dict) else {}
    for key in keep:
        if key not in old:
            keys = ", ".join(old) or "nothing"
            raise ConfigError(f"the entry {NAME!r} that stands there has no {key!r} to keep", hint=f"It has: {keys}.")


def _show_dropped(entry: EntryChange) -> None:
    for key, value in entry.dropped.items():
        say(f"Not kept of the entry: {key} = {_json(value)}; `--keep {key}` keeps it.", err=True)


def _consent(change: FileChange, entry: EntryChange, place: Place, *, is_agreed: bool) -> None:
    """Show an entry that is not ours to replace, and ask for it unless its user has agreed.

    Raises:
        ConfigError: It stays.
    """
    reason = f"starts deepwork for {entry.elsewhere}" if entry.elsewhere else "was not written by `deepwork connect`"
    say(f"{change.name} has an entry {NAME!r} that {reason}:", err=True)
    say_text(_json(entry.old, indent=2), "    ", err=True)
    say("It would become:", err=True)
    say_text(_json(entry.new, indent=2), "    ", err=True)
    if is_agreed or (sys.stdin.isatty() and click.confirm("Replace it?", err=True)):
        return
    command = f"deepwork connect {place.client.name}" + (
        " --scope user" if place.scope != default_scope(place.client) else ""
    )
    raise ConfigError(
        f"{change.name} was left as it is: its entry {NAME!r} {reason}",
        hint=f"`{command} --replace` replaces it, and --remove brings it back. Or give that entry another name in the "
        f"file, and run `{command}` again.",
    )


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def place_of(client: Client, root: Path, scope: Scope | None = None) -> Place:
    """Return the place where a client finds our server.

    Raises:
        ConfigError: The client has no file in projects.
    """
    if scope == "project" and not client.project_files:
        raise ConfigError(f"{client.title} has no file in projects", hint="Use --scope user.")
    return Place(client, root, scope or default_scope(client), os.environ)


def _disconnect(place: Place, *, dry_run: bool) -> None:
    changes = planned_removal(place)
    for change in changes:
        remove_file(change, place, dry_run=dry_run)
    if not changes:
        say(f"{place.client.title} has no file here.", err=True)
    elif not any(change.changes for change in changes) and place.entry() is not None:
        project = project_elsewhere(place)
        reason = f"starts deepwork for {project}" if project else "was not written by `deepwork connect`"
        say(f"Note: the entry {NAME!r} in {place.shown(place.file)} {reason}, and stays.", err=True)


def remove_file(change: FileChange, place: Place, *, dry_run: bool) -> None:
    """Take everything of ours out of one file, or show what that would change, and say what was done."""
    if dry_run and change.changes:
        say_text(_difference(change))
        return
    if change.changes:
        carry_out_removal(change, place)
    say(f"{'removed' if change.changes else 'unchanged':9}  {change.name}")


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


def _printed(root: Path, *, transient: bool) -> str:
    program, *words = installed_command(os.environ, transient=transient)
    entry = {"command": program, "args": [*words, "serve", "--path", str(root)]}
    return json.dumps({"mcpServers": {NAME: entry}}, indent=2, ensure_ascii=False)
