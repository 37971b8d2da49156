"""What `deepwork doctor` says of clients: which of them start deepwork, and whether it starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from deepwork.builtin.clients.claude_plugin import LAUNCHER, installed_entries
from deepwork.builtin.clients.entries import added_keys, is_own_start
from deepwork.builtin.clients.hook_entries import form_of, with_hooks
from deepwork.builtin.clients.installed import hook_server, installed_command
from deepwork.builtin.clients.overview import ClientState, overview
from deepwork.builtin.clients.places import Place, Scope
from deepwork.builtin.clients.table import CLIENTS, HERE, Client, claude_folder
from deepwork.builtin.clients.verification import LATE, verify
from deepwork.errors import ConfigError
from deepwork.ports.records import Finding, Level
from deepwork.programs.installation import installation


def check_clients(root: Path) -> Iterator[Finding]:
    """Start the server of every entry as its client would, and list its tools: our own command, and no other."""
    states = [state for state in overview(root, os.environ) if state.place]
    for state in states:
        yield _client(state, state.place or Place(state.client, root, "user", os.environ))
        yield from _hooks(state, root)
    is_connected = any(state.client.name == "claude" and state.entry for state in states)
    yield from _plugins_of_claude(is_connected=is_connected)
    yield from _hooks_without_entry(root, {state.client.name for state in states})
    if not states:
        yield Finding(Level.INFO, "no client here starts deepwork", "deepwork connect")


def _plugins_of_claude(*, is_connected: bool) -> Iterator[Finding]:
    """Compare the entry of an installed plugin with that of connect: Claude Code joins two servers that are equal."""
    entries = installed_entries(claude_folder(os.environ))
    with suppress(ConfigError):
        ours = CLIENTS["claude"].entry([*installed_command(os.environ), "serve", "--path", HERE])
        for file, entry in entries.items():
            if CLIENTS["claude"].command_of(entry) == [LAUNCHER, "serve", "--path", HERE]:
                yield _with_own_deepwork(file, is_connected=is_connected)
            elif entry == ours:
                yield Finding(Level.OK, f"Claude Code: the plugin in {file.parent} starts the same command")
            else:
                text = f"Claude Code: the plugin in {file.parent} starts another command than `deepwork connect claude`"
                yield Finding(Level.WARNING, text, "deepwork connect claude --plugin FOLDER, then install it again")


def _with_own_deepwork(file: Path, *, is_connected: bool) -> Finding:
    if is_connected:
        text = f"Claude Code has the plugin in {file.parent} and an entry: its agents get every tool twice"
        return Finding(Level.WARNING, text, "deepwork connect claude --remove, or claude plugin uninstall deepwork")
    return Finding(Level.OK, f"Claude Code: the plugin in {file.parent} brings its own deepwork")


def _client(state: ClientState, place: Place) -> Finding:
    text, cure = f"{state.client.title}: {state.detail}", f"deepwork connect {state.client.name}"
    if state.word == "broken":
        return Finding(Level.WARNING, text, cure)
    if state.entry is None:
        return Finding(Level.INFO, text)
    try:
        if not any(is_own_start(place, command, state.entry) for command in _own_commands()):
            # A repository may have written the entry, and doctor starts nothing for a repository.
            added = ", ".join(added_keys(state.client, state.entry))
            reason = "not tried, because it is not what `deepwork connect` writes" + (f": {added}" if added else "")
            return Finding(Level.INFO, f"{text}: {reason}", cure)
        verified = verify(place, state.entry)
    except ConfigError as error:
        return Finding(Level.WARNING, f"{text}: {error.message}", cure)
    if verified is None:
        return Finding(Level.WARNING, f"{text}: {LATE}", "deepwork doctor, when it is less busy")
    text += f": {len(verified.tools)} tools after {verified.seconds:.1f} s, about {verified.tokens:,} tokens"
    text += verified.without
    if not _form(place):
        return Finding(Level.OK, text)
    if not verified.answers_hooks:
        cure += f" --scope {place.scope} --replace"
        return Finding(Level.WARNING, f"{text}, but it answers no hooks, which call it", cure)
    return Finding(Level.OK, f"{text}, and it answers hooks")


def _own_commands() -> list[tuple[str, ...]]:
    """Return the words with which `connect` has clients start this deepwork: installed, or by `uvx`.

    Raises:
        ConfigError: It has none.
    """
    own = installation(os.environ)
    transient = (shutil.which("uvx") and own.requirement) is not None
    lasting = [] if own.is_passing and transient else [installed_command(os.environ)]
    return [*lasting, *([installed_command(os.environ, transient=True)] if transient else [])]


def _hooks(state: ClientState, root: Path) -> Iterator[Finding]:
    """Report in which form the hooks of a connected client are, and whether its version can carry them out."""
    client, cure = state.client, f"deepwork connect {state.client.name}"
    for place in _places(client, root):
        form = _form(place)
        if form is None:
            continue
        name = place.shown(place.hooks_file or place.file)
        server = hook_server(client, os.environ, root)
        can_call = server is not None
        if form and not can_call:
            version = ".".join(map(str, (client.hooks.tools_since if client.hooks else None) or ()))
            text = f"{client.title}: the hooks in {name} call a tool, and no version in PATH can, from {version} on"
            yield Finding(Level.WARNING, text, f"{cure} writes commands, or update {client.title}")
        elif can_call and not form:
            yield Finding(Level.INFO, f"{client.title}: the hooks in {name} run a command; they can call a tool", cure)
        elif not _is_of_this_release(place, server):
            text = f"{client.title}: the hooks in {name} are not as this release writes them"
            yield Finding(Level.WARNING, text, cure)
        else:
            yield Finding(Level.OK, f"{client.title}: the hooks in {name} {'call a tool' if form else 'run a command'}")


def _is_of_this_release(place: Place, server: str | None) -> bool:
    """True if `connect` would leave the hooks of a place as they are, or cannot write any."""
    root = str(place.root) if place.scope == "user" else None
    with suppress(ConfigError, UnicodeError):
        text = ((place.read(place.hooks_file) if place.hooks_file else None) or b"").decode()
        return any(with_hooks(place.client, command, root, text, server) == text for command in _own_commands())
    return True


def _hooks_without_entry(root: Path, connected: Collection[str]) -> Iterator[Finding]:
    """Warn of hooks that call a server which no entry starts: a client says nothing of it."""
    for client in CLIENTS.values():
        for place in _places(client, root) if client.name not in connected else ():
            if _form(place):
                text = f"{client.title}: the hooks in {place.shown(place.hooks_file or place.file)} call a server that"
                yield Finding(Level.WARNING, f"{text} has no entry", f"deepwork connect {client.name}")


def _places(client: Client, root: Path) -> list[Place]:
    scopes: tuple[Scope, ...] = ("project", "user")
    return [Place(client, root, scope, os.environ) for scope in scopes if client.hooks]


def _form(place: Place) -> str | None:
    """Return the server that the hooks of a place call; "" for commands, None without hooks of ours."""
    with suppress(ConfigError, UnicodeError):
        content = place.read(place.hooks_file) if place.hooks_file else None
        return form_of(place.client, content.decode()) if content else None
    return None
