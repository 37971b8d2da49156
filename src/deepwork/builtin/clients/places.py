"""Where a client is to find us: its files in a project or of the user, read without following links out of there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from deepwork.builtin.clients.files import decoded, get
from deepwork.builtin.clients.table import WORKSPACE_FOLDER, Client, user_path
from deepwork.errors import ConfigError, PathRefused
from deepwork.paths.paths import describe, read_regular, resolve_inside

Scope = Literal["project", "user"]

# A client's own file holds all that the client keeps there; a repository may have inflated a project's file.
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
            files = self.client.user_files(self.environment)
        return next((file for file in files if file.exists()), files[0])

    @property
    def hooks_file(self) -> Path | None:
        """The file of the hooks; None if the client has none."""
        hooks = self.client.hooks
        if hooks is None:
            return None
        return (
            self.root / hooks.project_file if self.scope == "project" else user_path(hooks.user_file, self.environment)
        )

    @property
    def folder(self) -> str:
        """What the entry says for the project's folder."""
        in_project = self.client.folder if self.scope == "project" else None
        return in_project or str(self.root)

    def with_folder(self, text: str) -> str:
        """Put the project's folder where the client does."""
        return text.replace(WORKSPACE_FOLDER, str(self.root))

    def shown(self, file: Path) -> str:
        """A file as people read it."""
        return str(file.relative_to(self.root)) if file.is_relative_to(self.root) else str(file)

    def resolved(self, file: Path) -> Path:
        """Follow links: a file of a project must stay in it.

        Raises:
            ConfigError: It leads out of the project.
        """
        if self.scope == "user":
            return Path(os.path.realpath(file))
        try:
            return resolve_inside(str(file), [self.root])[0]
        except PathRefused as error:
            raise ConfigError(
                f"{self.shown(file)} {error.message}: it is a link", hint="Remove the link, or use --scope user."
            ) from None

    def read(self, file: Path) -> bytes | None:
        """Read a file; None if it does not exist.

        Raises:
            ConfigError: It cannot be read, is too large, or leads out of the project.
        """
        path = self.resolved(file)
        inside, limit = (self.root, MAX_PROJECT_BYTES) if self.scope == "project" else (path.parent, MAX_BYTES)
        try:
            return read_regular(str(path), [inside], limit=limit)
        except FileNotFoundError:
            return None
        except (OSError, PathRefused) as error:
            raise ConfigError(f"{self.shown(file)} {describe(error)}") from None

    def entry(self) -> Any:
        """Return what stands under our name in the client's file; None if nothing does.

        Raises:
            ConfigError: The file cannot be read.
        """
        content = self.read(self.file)
        if content is None:
            return None
        with named(self.shown(self.file)):
            return entry_in(self.client, decoded(content))


def default_scope(client: Client) -> Scope:
    """Return the project, for clients that have a file there."""
    return "project" if client.project_files else "user"


def entry_in(client: Client, text: str) -> Any:
    """Return what stands under our name in a text; None if nothing does.

    Raises:
        Unreadable: The text cannot be parsed.
    """
    client.syntax.document(text)
    return get(client.syntax.data(text), client.keys_of_entry)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Put the name of a file before what is wrong with it."""
    try:
        yield
    except ConfigError as error:
        hint = "It was left as it is. `deepwork connect print` prints the entry, to be added by hand."
        raise ConfigError(f"{name}: {error.message}", hint=error.hint or hint) from None
