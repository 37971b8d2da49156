"""The tools about repositories, which are only names: a path may be one of another machine."""

from __future__ import annotations

import posixpath

from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import Count, Limit, Name, Text
from deepwork_orchestration.errors import invalid_input
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Mapped, Repository


def repository_register(act: Act, path: Text, name: Name | None = None) -> Mapped:
    """Register a repository by its absolute path."""
    return {"id": register(act, normalized(path), name)}


def repository_list(act: Act, limit: Limit = 20, offset: Count = 0) -> Mapped:
    """List repositories, newest first."""
    page, left_out, total = act.records.repositories(limit, offset)
    repositories = [repository.reply() for repository in page]
    return {"repositories": repositories, **omitted("repositories", left_out), "total": total}


def repository_get(act: Act, path: Text) -> Mapped | None:
    """Get a repository by its path, or null."""
    repository = act.records.repository_at(normalized(path))
    return repository.reply() if repository else None


def normalized(path: str, field: str = "path") -> str:
    """Normalize an absolute path as text, without looking for it.

    Raises:
        OrchestrationError: INVALID_INPUT; it is relative.
    """
    if not path.startswith("/"):
        raise invalid_input(field, f"must be absolute, not {path[:200]!r}", "Give the whole path, from / on.")
    return "/" + posixpath.normpath(path).lstrip("/")


def register(act: Act, path: str, name: str | None = None) -> str:
    """Store a repository if it is new, or its new name, and give its id."""
    repository = act.records.repository_at(path)
    if repository is None:
        return act.records.add(Repository, path=path, name=name).id
    if name is not None and name != repository.name:
        act.records.change(Repository, repository.id, name=name)
    return repository.id
