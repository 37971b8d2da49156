"""Connects clients: puts our entry and our hooks into their files."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepwork.builtin.clients.backups import Backups, Record
from deepwork.builtin.clients.entries import EntryChange, planned_entry
from deepwork.builtin.clients.files import decoded, with_entry
from deepwork.builtin.clients.hook_entries import with_hooks, without_hooks
from deepwork.builtin.clients.installed import hook_server
from deepwork.builtin.clients.places import Place, entry_in, named
from deepwork.errors import ConfigError
from deepwork.paths.folder import Folder


@dataclass(frozen=True)
class FileChange:
    """A file before and after a change; None if it does not exist.

    Attributes:
        name: The file as people read it.
        entry: What becomes of our entry; None for a file that is for hooks alone.
        has_ours: Whether something of ours stands in it already.
    """

    path: Path
    name: str
    before: bytes | None
    after: bytes | None
    entry: EntryChange | None = None
    has_ours: bool = False

    @property
    def changes(self) -> bool:
        return self.before != self.after


def planned(place: Place, command: Sequence[str], *, hooks: bool, keep: Collection[str] = ()) -> list[FileChange]:
    """Return what connecting would change, the file of the entry first, and change nothing.

    Args:
        place: Where the client is to find us.
        command: The words that start this deepwork.
        hooks: Whether the client's hooks are written too.
        keep: Keys of an entry that stands there which are kept.

    Raises:
        ConfigError: A file cannot be parsed or changed, or is a link out of the project.
    """
    files = [place.file]
    if hooks and place.hooks_file and place.hooks_file != place.file:
        files.append(place.hooks_file)
    return [_planned(place, command, file, hooks=hooks, keep=keep) for file in files]


def carry_out(change: FileChange, place: Place, *, consented: bool) -> Path | None:
    """Write a file after a backup in the user's state folder, and return the backup; None if there was no file.

    If the file stays as it is, only the entry is noted, which counts as ours from now on.

    Args:
        change: What is written.
        place: Where the client is to find us.
        consented: Whether the user has agreed that an entry is replaced which is not ours to replace.

    Raises:
        ConfigError: It cannot be written, or has changed meanwhile; it is as it was.
    """
    path = place.resolved(change.path)
    backups = Backups(path, place.environment)
    entry, made = change.entry, [folder for folder in path.parents if not folder.exists()]
    record = Record(
        str(path),
        is_original_known=not change.has_ours,
        made_folders=tuple(map(str, made)),
        client=place.client.name,
        scope=place.scope,
        root=str(place.root),
        entry=dict(entry.new) if entry else None,
        replaced=_replaced(entry, backups.record()),
    )
    try:
        backup = backups.keep(record, change.before, change.after or b"", consented=consented)
    except OSError as error:
        where = error.filename or "the user's state folder"
        text = f"{change.name} was not changed, because it cannot be backed up: {where}: {error.strerror}"
        raise ConfigError(text) from None
    try:
        if change.changes:
            write_file(path, change)
    except OSError as error:
        raise ConfigError(f"{change.name} cannot be written: {error.strerror}") from None
    return backup


def write_file(path: Path, change: FileChange) -> None:
    """Replace a file that is as it was when the change was planned.

    Raises:
        ConfigError: It has changed meanwhile.
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with Folder.open(path.parent, inside=path.parent) as folder:
        if folder.read(path.name) != change.before:
            raise ConfigError(f"{change.name} was changed by another program meanwhile", hint="Run it again.")
        mode = folder.status(path.name).st_mode & 0o7777 if change.before is not None else 0o666 & ~_umask()
        folder.replace(path.name, change.after or b"")
        os.chmod(path.name, mode, dir_fd=folder.descriptor)


def _planned(place: Place, command: Sequence[str], file: Path, *, hooks: bool, keep: Collection[str]) -> FileChange:
    client, name = place.client, place.shown(file)
    before = place.read(file)
    record = Backups(place.resolved(file), place.environment).record()
    with named(name):
        text = result = decoded(before or b"")
        entry = None
        if file == place.file:
            entry = planned_entry(place, command, entry_in(client, text), record, keep)
            result = with_entry(result, client.syntax, client.keys_of_entry, dict(entry.new))
        has_hooks = file == place.hooks_file and without_hooks(client, text) != text
        if hooks and file == place.hooks_file:
            root = str(place.root) if place.scope == "user" else None
            result = with_hooks(client, command, root, result, hook_server(client, place.environment, place.root))
    has_ours = has_hooks or bool(entry and entry.was_written and entry.elsewhere is None)
    after = before if result == text else result.encode()
    return FileChange(file, name, before, after, entry, has_ours)


def _replaced(entry: EntryChange | None, known: Record | None) -> Any:
    """Return the entry that ours has replaced, now or earlier; None if it replaced nothing."""
    if entry is None:
        return None
    if entry.needs_consent:
        return entry.old
    return known.replaced if known and entry.was_written else None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
