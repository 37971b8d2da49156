"""What `connect` writes under our name, and whether it has written what stands there."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepwork.builtin.clients.backups import Backups, Record
from deepwork.builtin.clients.places import Place
from deepwork.builtin.clients.table import NAME, Client


@dataclass(frozen=True)
class EntryChange:
    """An entry as it stands and as `connect` writes it.

    Attributes:
        old: What stands under our name; None if nothing does.
        new: What is written.
        was_written: Whether `connect` has written the old one; what a user has added to it does not count.
        elsewhere: The project for which the old one starts the server, if `connect` has written it for another one.
    """

    old: Any
    new: Mapping[str, Any]
    was_written: bool
    elsewhere: str | None

    @property
    def needs_consent(self) -> bool:
        """Whether something is replaced that is not ours to replace."""
        return self.old not in (None, self.new) and (not self.was_written or self.elsewhere is not None)

    @property
    def dropped(self) -> dict[str, Any]:
        """What of the old entry is not in the new one; of an entry that is replaced as a whole, nothing."""
        if self.needs_consent or not isinstance(self.old, dict):
            return {}
        return {key: value for key, value in self.old.items() if key not in self.new}


def planned_entry(
    place: Place, words: Sequence[str], old: Any, record: Record | None, keep: Collection[str] = ()
) -> EntryChange:
    """Compare an entry with the entry that `connect` writes.

    In a project's file, which a repository may bring, nothing but our entry is written: what else stands in the old one
    goes, unless the user has asked for it by `keep`, now or when it was written. In the user's own file it stays.

    Args:
        place: Where the client is to find us.
        words: The words that start this deepwork.
        old: What stands there under our name; None if nothing does.
        record: What is known of the file.
        keep: Keys of the old entry that stay.
    """
    client = place.client
    ours = client.entry([*words, "serve", "--path", place.folder])
    command = client.command_of(old)
    was_written = is_written(client, old, record)
    folder = command[-1] if was_written and command else None
    elsewhere = folder if folder != place.folder else None
    if not isinstance(old, dict) or command is None:
        new = {**ours, **client.extras}
    elif was_written and elsewhere is None and place.scope == "user":
        new = {**old, **ours}
    else:
        recorded = (record.entry if record else None) or {}
        kept = {
            key: value
            for key, value in old.items()
            if key in client.extras or key in keep or (key in recorded and recorded[key] == value)
        }
        # An extra that the user has taken out of our entry stays out.
        new = {**({} if was_written else client.extras), **kept, **ours}
    return EntryChange(old, new, was_written, elsewhere)


def is_own_start(place: Place, words: Sequence[str], entry: Any) -> bool:
    """True if an entry may be started to try it: in a project's file the whole of it is what `connect` writes.

    In the user's own file, which no repository brings, it starts this installation.
    """
    if place.scope == "user":
        return (place.client.command_of(entry) or [])[: len(words) + 1] == [*words, "serve"]
    record = Backups(place.resolved(place.file), place.environment).record()
    return bool(planned_entry(place, words, entry, record).new == entry)


def is_written(client: Client, entry: Any, record: Record | None) -> bool:
    """True if `connect` has written an entry; what a user has added to it since does not count."""
    if record is None or client.command_of(entry) is None:
        return False
    if record.entry is None:  # a release that noted no entries has written the file
        return has_our_form(client, entry)
    start = client.entry(client.command_of(record.entry) or [])
    return all(entry.get(key) == value for key, value in start.items())


def has_our_form(client: Client, entry: Any) -> bool:
    """True if an entry starts a server of ours by a full path for a project, as `connect` writes it."""
    command = client.command_of(entry) or []
    program, *options = command or [""]
    is_ours = os.path.isabs(program) and os.path.basename(program) == NAME
    return is_ours and len(options) == 3 and options[:2] == ["serve", "--path"]


def added_keys(client: Client, entry: Any) -> list[str]:
    """List the keys of an entry that `connect` never writes by itself."""
    own = {*client.entry([NAME]), *client.extras}
    return [key for key in entry if key not in own] if isinstance(entry, dict) else []
