"""What can be set under `plugins.settings.sql`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from deepwork.api import NeedsTrust

_SECRETS = ("password", "sslpassword")


def without_password(url: Any) -> Any:
    """Take the password out of a URL, so that it can be shown. What is left is as it was written."""
    if not isinstance(url, str):
        return url
    parts = urlsplit(url)
    user, has_user, place = parts.netloc.rpartition("@")
    if not has_user and has_bad_port(url):  # it may be the beginning of a password that is not escaped
        return f"{parts.scheme}://…"
    shown = url.replace(parts.netloc, f"{user.partition(':')[0]}{has_user}{place}", 1) if has_user else url
    shown_query = "&".join(item for item in parts.query.split("&") if item.partition("=")[0] not in _SECRETS)
    return shown if shown_query == parts.query else f"{shown.partition('?')[0]}?{shown_query}"


def has_bad_port(url: str) -> bool:
    """Say whether what should be the port of a URL is no number."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        return True
    return False


class SqlSettings(BaseModel):
    """The settings of this plugin.

    Attributes:
        database_url: Where the database is; an SQLite file of the repository if not given.
        scope: Whether all worktrees of a repository share the SQLite file, or each has one.
        machine: The name of this machine, by which its sessions are kept apart; that of the host if not given.
        migrate: Whether the first use of a database brings its tables up to date.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    database_url: Annotated[str | None, NeedsTrust(shown=without_password)] = None
    scope: Literal["repository", "worktree"] = "repository"
    machine: str | None = None
    migrate: bool = True


class AskedSettings(BaseModel):
    """What the configuration asks for, trusted or not."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    database_url: Any = None
