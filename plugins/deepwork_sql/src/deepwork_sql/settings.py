"""What can be set under `plugins.settings.sql`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict

from deepwork.api import NeedsTrust
from deepwork_sql.server_url import shown_url


class SqlSettings(BaseModel):
    """The settings of this plugin.

    Attributes:
        database_url: Where the database is; an SQLite file in the user's state folder if not given.
        scope: Whether all worktrees of a repository share the SQLite file, or each has its own.
        machine: The name of this machine, which keeps its sessions apart; by default the host's.
        migrate: Whether the first use of a database brings its tables up to date.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    database_url: Annotated[str | None, NeedsTrust(shown=shown_url)] = None
    scope: Literal["repository", "worktree"] = "repository"
    machine: str | None = None
    migrate: bool = True


class AskedSettings(BaseModel):
    """What the configuration asks for, trusted or not."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    database_url: Any = None
