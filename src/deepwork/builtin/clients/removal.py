"""Takes our entry and our hooks out of the files of clients, and brings back what stood there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from deepwork.builtin.clients.backups import Backups, Record, all_records, digest
from deepwork.builtin.clients.connection import FileChange, write_file
from deepwork.builtin.clients.entries import has_our_form, is_written
from deepwork.builtin.clients.files import decoded, with_entry, without_entry
from deepwork.builtin.clients.hook_entries import without_hooks
from deepwork.builtin.clients.places import Place, Scope, default_scope, entry_in, named
from deepwork.builtin.clients.table import CLIENTS, user_path
from deepwork.errors import ConfigError


def planned_removal(place: Place) -> list[FileChange]:
    """Return what taking out our entry and our hooks would change, and change nothing.

    In the user's file, what `connect` has written for another project stays.

    Raises:
        ConfigError: A file cannot be parsed or changed, or is a link out of the project.
    """
    # The folder that was made for the file of the entry is empty only after that of the hooks is gone.
    files = dict.fromkeys(filter(None, [place.hooks_file, place.file]))
    changes = [change for file in files if (change := planned_removal_of(place, file))]
    if project_elsewhere(place):
        return [replace(change, after=change.before) for change in changes]
    return changes


def planned_removal_of(place: Place, file: Path) -> FileChange | None:
    """Return the change that removes everything of ours from one file; None if there is no such file.

    A file that was not changed since is restored byte by byte. An entry that `connect` has not written stays.

    Raises:
        ConfigError: It cannot be parsed or changed, or is a link out of the project.
    """
    before = place.read(file)
    if before is None:
        return None
    name = place.shown(file)
    backups = Backups(place.resolved(file), place.environment)
    record = backups.record()
    if record and record.is_original_known and record.after == digest(before):
        with suppress(OSError):  # without the backup everything of ours is taken out one by one
            return FileChange(file, name, before, backups.original(record))
    with named(name):
        text = old_text = decoded(before)
        if _holds_hooks(place, file):
            text = without_hooks(place.client, text)
        if _holds_entry(place, file):
            text = _without_our_entry(place, record, text)
    return FileChange(file, name, before, before if text == old_text else text.encode())


def project_elsewhere(place: Place) -> str | None:
    """Return the other project for which `connect` has written the entry in the user's file; None if it is this one.

    Raises:
        ConfigError: The file cannot be read.
    """
    if place.scope == "project":
        return None
    entry, client = place.entry(), place.client
    record = Backups(place.resolved(place.file), place.environment).record()
    command = client.command_of(entry)
    is_ours = is_written(client, entry, record) or has_our_form(client, entry)
    return command[-1] if is_ours and command and command[-1] != place.folder else None


def carry_out_removal(change: FileChange, place: Place) -> None:
    """Write or remove a file, and forget what was known of it.

    Raises:
        ConfigError: It cannot be written, or has changed meanwhile; it is as it was.
    """
    path = place.resolved(change.path)
    backups = Backups(path, place.environment)
    record = backups.record()
    try:
        if change.after is None:
            path.unlink()
        else:
            write_file(path, change)
    except OSError as error:
        raise ConfigError(f"{change.name} cannot be written: {error.strerror}") from None
    if change.after is None and record:
        _remove_empty(record.made_folders)
    backups.forget()


def recorded_files(environment: Mapping[str, str]) -> list[Record]:
    """List every file that `connect` has written and not taken out.

    Files for which fewer folders were made come first, so that these folders are empty in the end.
    """
    return sorted(all_records(environment), key=_made_folders)


def unwound(file: Path, environment: Mapping[str, str], *, dry_run: bool) -> Iterator[tuple[Place, FileChange]]:
    """Yield how everything of ours is taken out of a file: what was written last first, once each is carried out.

    A file that is gone, or has nothing of ours any more, is forgotten.

    Raises:
        ConfigError: It cannot be read, parsed or changed.
    """
    backups = Backups(file, environment)
    while (record := backups.record()) and (place := _place_of(record, environment)):
        change = planned_removal_of(place, file)
        if change and change.changes:
            yield place, change
        if dry_run:
            return
        if backups.record() == record:
            backups.forget()


def _made_folders(record: Record) -> int:
    """Count the folders that were made for a file, whenever that was."""
    return len(record.made_folders) + (_made_folders(record.earlier) if record.earlier else 0)


def _without_our_entry(place: Place, record: Record | None, text: str) -> str:
    client, entry = place.client, entry_in(place.client, text)
    if not is_written(client, entry, record):
        # Where nothing is known, an entry that starts our command for this project is taken to be ours.
        if record is not None or not has_our_form(client, entry):
            return text
    elif record and isinstance(record.replaced, dict):
        return with_entry(text, client.syntax, client.keys_of_entry, record.replaced)
    return without_entry(text, client.syntax, client.keys_of_entry)


def _holds_entry(place: Place, file: Path) -> bool:
    client = place.client
    return file.name in {Path(name).name for name in (*client.project_files, *client.user_paths)}


def _holds_hooks(place: Place, file: Path) -> bool:
    hooks = place.client.hooks
    return hooks is not None and file.name in {Path(hooks.project_file).name, Path(hooks.user_file).name}


def _remove_empty(folders: tuple[str, ...]) -> None:
    for folder in folders:
        try:
            Path(folder).rmdir()
        except OSError:  # another program has put something there
            return


def _place_of(record: Record, environment: Mapping[str, str]) -> Place | None:
    """Return the place that a file was written for; None if it is not a file of a known client.

    Raises:
        ConfigError: An earlier release has written it, and it cannot be read.
    """
    if record.client in CLIENTS and record.root and record.scope:
        return Place(CLIENTS[record.client], Path(record.root), cast("Scope", record.scope), environment)
    return next(_possible_places(Path(record.path), environment), None)


def _possible_places(file: Path, environment: Mapping[str, str]) -> Iterator[Place]:
    """Find by its name whose file it is that an earlier release has written."""
    for client in CLIENTS.values():
        hooks = client.hooks
        user_paths = [*client.user_paths, *([hooks.user_file] if hooks else [])]
        if file in [Path(os.path.realpath(user_path(path, environment))) for path in user_paths]:
            place = Place(client, Path.home(), "user", environment)
            command = client.command_of(place.entry())
            yield replace(place, root=Path(command[-1])) if command else place
        for name in (*client.project_files, *([hooks.project_file] if hooks else [])):
            root = Path(*file.parts[: -len(Path(name).parts)])
            if root / name == file and default_scope(client) == "project":
                yield Place(client, root, "project", environment)
