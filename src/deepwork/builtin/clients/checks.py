"""What `deepwork doctor` says of clients: which of them start deepwork, and whether it starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deepwork.builtin.clients.claude_plugin import LAUNCHER, installed_entries
from deepwork.builtin.clients.entries import added_keys, is_own_start
from deepwork.builtin.clients.hook_entries import form_of, with_hooks
from deepwork.builtin.clients.installed import hook_server, installed_command
from deepwork.builtin.clients.overview import ClientState, overview
from deepwork.builtin.clients.places import Place, Scope
from deepwork.builtin.clients.table import CLIENTS, HERE
from deepwork.builtin.clients.verification import LATE, verify
from deepwork.errors import ConfigError
from deepwork.ports.records import Finding, Level
from deepwork.programs.installation import installation


def check_clients(root: Path) -> Iterator[Finding]:
    """Start the server of every entry as its client would, and list its tools: our own command, and no other."""
    states = [*overview(root, os.environ)]
    for state in states:
        if state.place:
            yield _client(state, state.place)
        yield from _hooks(state, root)
    is_connected = any(state.client.name == "claude" and state.entry for state in states)
    yield from _plugins_of_claude(is_connected=is_connected)
    if not any(state.place for state in states):
        yield Finding(Level.INFO, "no client here starts deepwork", "deepwork connect")


def _plugins_of_claude(*, is_connected: bool) -> Iterator[Finding]:
    """Compare the entry of an installed plugin with that of connect: Claude Code joins two servers that are equal."""
    entries = installed_entries(os.environ)
    with suppress(ConfigError):
        ours = CLIENTS["claude"].entry([*installed_command(os.environ), "serve", "--path", HERE])
        for file, entry in entries.items():
            plugin = f"the plugin in {file.parent}"
            brings_its_own = CLIENTS["claude"].command_of(entry) == [LAUNCHER, "serve", "--path", HERE]
            if brings_its_own and is_connected:
                text = f"Claude Code has {plugin} and an entry: its agents get every tool twice"
                cure = "deepwork connect claude --remove, or claude plugin uninstall deepwork"
                yield Finding(Level.WARNING, text, cure)
            elif brings_its_own:
                yield Finding(Level.OK, f"Claude Code: {plugin} brings its own deepwork")
            elif entry == ours:
                yield Finding(Level.OK, f"Claude Code: {plugin} starts the same command")
            else:
                text = f"Claude Code: {plugin} starts another command than `deepwork connect claude`"
                yield Finding(Level.WARNING, text, "deepwork connect claude --plugin FOLDER, then install it again")


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
    """Report in which form the hooks of a client are, whether its version can carry them out, and what they call."""
    client, cure = state.client, f"deepwork connect {state.client.name}"
    scopes: tuple[Scope, ...] = ("project", "user") if client.hooks else ()
    for place in (Place(client, root, scope, os.environ) for scope in scopes):
        form = _form(place)
        if form is None or not (form or state.place):
            continue
        text = f"{client.title}: the hooks in {place.shown(place.hooks_file or place.file)}"
        server = hook_server(client, os.environ, root) if state.place else None
        if not state.place:
            # A client says nothing of it.
            yield Finding(Level.WARNING, f"{text} call a server that has no entry", cure)
        elif form and server is None:
            version = ".".join(map(str, (client.hooks.tools_since if client.hooks else None) or ()))
            text = f"{text} call a tool, and no version in PATH can, from {version} on"
            yield Finding(Level.WARNING, text, f"{cure} writes commands, or update {client.title}")
        elif server and not form:
            yield Finding(Level.INFO, f"{text} run a command; they can call a tool", cure)
        elif not _is_of_this_release(place, server):
            yield Finding(Level.WARNING, f"{text} are not as this release writes them", cure)
        else:
            yield Finding(Level.OK, f"{text} {'call a tool' if form else 'run a command'}")


def _is_of_this_release(place: Place, server: str | None) -> bool:
    """True if `connect` would leave the hooks of a place as they are, or cannot write any."""
    root = str(place.root) if place.scope == "user" else None
    with suppress(ConfigError, ValueError):
        text = _hooks_text(place)
        return any(with_hooks(place.client, command, root, text, server) == text for command in _own_commands())
    return True


def _form(place: Place) -> str | None:
    """Return the server that the hooks of a place call; "" for commands, None without hooks of ours."""
    with suppress(ConfigError, ValueError):
        return form_of(place.client, _hooks_text(place))
    return None


def _hooks_text(place: Place) -> str:
    return ((place.read(place.hooks_file) if place.hooks_file else None) or b"").decode()
