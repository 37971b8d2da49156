"""Connects clients: our entry and our hooks in their files, put in, compared, and taken out again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from deepwork.clients.backups import Backups, digest
from deepwork.clients.client_files import decoded, get, with_entry, without_entry
from deepwork.clients.hook_entries import with_hooks, without_hooks
from deepwork.clients.table import Client
from deepwork.errors import ConfigError, PathRefused
from deepwork.files.folder import Folder
from deepwork.files.paths import describe, read_regular, resolve_inside

Scope = Literal["project", "user"]
Change = Callable[[str], str]

# A client's own file holds whatever the client keeps there; a project's may be one that a repository has grown.
MAX_BYTES = 16 * 1024 * 1024
MAX_PROJECT_BYTES = 256 * 1024


@dataclass(frozen=True)
class Place:
    """Where a client is to find us: in a project's file, or in the user's for that project."""

    client: Client
    root: Path
    scope: Scope
    environment: Mapping[str, str]

    @property
    def file(self) -> Path:
        """The file of the entry: the first of the client's that exists, else its first."""
        if self.scope == "project":
            files = [self.root / name for name in self.client.project_files]
        else:
            files = [*self.client.user_files(self.environment)]
        return next((file for file in files if file.exists()), files[0])

    @property
    def hooks_file(self) -> Path | None:
        """The file of the hooks; None if the client has none."""
        hooks = self.client.hooks
        if hooks is None:
            return None
        return self.root / hooks.project_file if self.scope == "project" else hooks.user_file(self.environment)

    @property
    def folder(self) -> str:
        """What the entry says for the project's folder."""
        in_project = self.client.folder if self.scope == "project" else None
        return in_project or str(self.root)

    def shown(self, file: Path) -> str:
        """A file as people read it."""
        return str(file.relative_to(self.root)) if file.is_relative_to(self.root) else str(file)


@dataclass(frozen=True)
class FileChange:
    """A file as it is and as it will be; None means that there is no file."""

    path: Path
    name: str
    before: bytes | None
    after: bytes | None
    has_ours: bool = False

    @property
    def changes(self) -> bool:
        return self.before != self.after


def default_scope(client: Client) -> Scope:
    """Give the project, for clients that have a file there."""
    return "project" if client.project_files else "user"


def planned(place: Place, program: str, *, hooks: bool) -> list[FileChange]:
    """Say what connecting would change, and change nothing.

    Args:
        place: Where the client is to find us.
        program: The full path of our command.
        hooks: Whether the client's hooks are written too.

    Raises:
        ConfigError: A file cannot be parsed or changed, or is a link out of the project.
    """
    put_in: dict[Path, list[Change]] = {place.file: [partial(_with_our_entry, place, program)]}
    take_out: dict[Path, list[Change]] = {place.file: [partial(_without_our_entry, place)]}
    if hooks and place.hooks_file:
        put_in.setdefault(place.hooks_file, []).append(partial(_with_our_hooks, place, program))
        take_out.setdefault(place.hooks_file, []).append(partial(without_hooks, place.client))
    return [_change(place, file, changes, take_out[file]) for file, changes in put_in.items()]


def planned_removal(place: Place) -> list[FileChange]:
    """Say what taking out our entry and our hooks would change, and change nothing.

    Raises:
        ConfigError: A file cannot be parsed or changed, or is a link out of the project.
    """
    take_out: dict[Path, list[Change]] = {place.file: [partial(_without_our_entry, place)]}
    if place.hooks_file:
        take_out.setdefault(place.hooks_file, []).append(partial(without_hooks, place.client))
    # In the reverse order: the folder that was made for the first file is empty only after the second is gone.
    return [*_removals(place, take_out)][::-1]


def carry_out(change: FileChange, place: Place) -> None:
    """Write, restore or remove a file, after a backup in the user's state folder.

    Raises:
        ConfigError: It cannot be written, or has changed meanwhile; it is as it was.
    """
    path = _resolved(place, change.path)
    backups = Backups(path, place.environment)
    try:
        if change.after is None:
            _remove(path, backups)
            return
        made = [] if change.before is not None else [folder for folder in path.parents if not folder.exists()]
        made_folders = tuple(str(folder) for folder in made)
        backups.keep(change.before, change.after, has_ours=change.has_ours, made_folders=made_folders)
        _write(path, change)
    except OSError as error:
        raise ConfigError(f"{change.name} cannot be written: {error.strerror}") from None


def forget(change: FileChange, place: Place) -> None:
    """Forget what we wrote into a file, once it is taken out."""
    Backups(_resolved(place, change.path), place.environment).forget()


def entry_at(place: Place) -> Any:
    """Give our entry as it stands in the client's file; None if there is none.

    Raises:
        ConfigError: The file cannot be read.
    """
    content = _read(place, place.file)
    syntax = place.client.syntax
    if content is None:
        return None
    text = decoded(content)
    with _named(place.shown(place.file)):
        syntax.document(text)
    return get(syntax.data(text), place.client.keys_of_entry)


def _change(place: Place, file: Path, changes: list[Change], undo: list[Change]) -> FileChange:
    before = _read(place, file)
    name = place.shown(file)
    with _named(name):
        text = decoded(before or b"")
        after = _applied(text, changes)
        has_ours = _applied(text, undo) != text
    return FileChange(file, name, before, before if after == text else after.encode(), has_ours)


def _removals(place: Place, take_out: dict[Path, list[Change]]) -> Iterator[FileChange]:
    for file, changes in take_out.items():
        before = _read(place, file)
        if before is None:
            continue
        name = place.shown(file)
        backups = Backups(_resolved(place, file), place.environment)
        record = backups.record()
        if record and record.is_original_known and record.after == digest(before):
            with suppress(OSError):  # without the backup the entry is taken out
                yield FileChange(file, name, before, backups.original(record))
                continue
        with _named(name):
            yield FileChange(file, name, before, _applied(decoded(before), changes).encode())


def _applied(text: str, changes: list[Change]) -> str:
    for change in changes:
        text = change(text)
    return text


def _with_our_entry(place: Place, program: str, text: str) -> str:
    client = place.client
    ours = client.entry([program, "serve", "--path", place.folder])
    client.syntax.document(text)
    old = get(client.syntax.data(text), client.keys_of_entry)
    # What a user has added to an entry that starts a program stays; an entry of another kind is replaced as a whole.
    entry = {**old, **ours} if client.command_of(old) else {**ours, **client.extras}
    return with_entry(text, client.syntax, client.keys_of_entry, entry)


def _without_our_entry(place: Place, text: str) -> str:
    return without_entry(text, place.client.syntax, place.client.keys_of_entry)


def _with_our_hooks(place: Place, program: str, text: str) -> str:
    root = str(place.root) if place.scope == "user" else None
    return with_hooks(place.client, program, root, text)


class _named:  # noqa: N801 - reads as a function
    """Puts the name of a file before what is wrong with it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ConfigError):
            hint = "It was left as it is. `deepwork connect print` prints the entry, to be added by hand."
            raise ConfigError(f"{self._name}: {error.message}", hint=error.hint or hint) from None


def _resolved(place: Place, file: Path) -> Path:
    """Follow links: a file of a project must stay in it."""
    if place.scope == "user":
        return Path(os.path.realpath(file))
    try:
        return resolve_inside(str(file), [place.root])[0]
    except PathRefused as error:
        raise ConfigError(
            f"{place.shown(file)} {error.message}: it is a link", hint="Remove the link, or use --scope user."
        ) from None


def _read(place: Place, file: Path) -> bytes | None:
    path = _resolved(place, file)
    inside, limit = (place.root, MAX_PROJECT_BYTES) if place.scope == "project" else (path.parent, MAX_BYTES)
    try:
        return read_regular(str(path), [inside], limit=limit)
    except FileNotFoundError:
        return None
    except (OSError, PathRefused) as error:
        raise ConfigError(f"{place.shown(file)} {describe(error)}") from None


def _write(path: Path, change: FileChange) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Folder.open(path.parent, inside=path.parent) as folder:
        if folder.read(path.name) != change.before:
            raise ConfigError(f"{change.name} was changed by another program meanwhile", hint="Run it again.")
        mode = folder.status(path.name).st_mode & 0o7777 if change.before is not None else 0o666 & ~_umask()
        folder.replace(path.name, change.after or b"")
        os.chmod(path.name, mode, dir_fd=folder.descriptor)


def _remove(path: Path, backups: Backups) -> None:
    record = backups.record()
    path.unlink()
    for folder in record.made_folders if record else ():
        try:
            Path(folder).rmdir()
        except OSError:  # somebody else has put something there
            return


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
