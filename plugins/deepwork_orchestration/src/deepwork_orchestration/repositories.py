"""Repositories, which are only names: a path may be one of another machine."""

from __future__ import annotations

import posixpath

from deepwork_orchestration.arguments import Count, Limit, Name, Text
from deepwork_orchestration.errors import invalid_input
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Mapped, Repository, Workflow
from deepwork_orchestration.sql import columns, listing, sql
from deepwork_orchestration.transaction import PlanTransaction

_ALL = "FROM orchestration_repositories"
_AT = sql(f"SELECT {columns(Repository)} {_ALL} WHERE path = :path")
_PAGE = listing(Repository, f"{_ALL} ORDER BY created_at DESC, number DESC LIMIT :limit OFFSET :offset")
_COUNT = sql(f"SELECT count(*) AS total {_ALL}")
_PATH = sql(f"SELECT path {_ALL} WHERE id = :id")


def repository_register(transaction: PlanTransaction, /, path: Text, name: Name | None = None) -> Mapped:
    """Register a repository by its absolute path."""
    return {"id": register(transaction, normalized(path), name)}


def repository_list(transaction: PlanTransaction, /, limit: Limit = 20, offset: Count = 0) -> Mapped:
    """List repositories, newest first."""
    page, left_out = transaction.some_of(Repository, _PAGE, limit=limit, offset=offset)
    repositories = [repository.reply() for repository in page]
    return {"repositories": repositories, **omitted("repositories", left_out), "total": transaction.count(_COUNT)}


def repository_get(transaction: PlanTransaction, /, path: Text) -> Mapped | None:
    """Get a repository by its path, or null."""
    repository = repository_at(transaction, normalized(path))
    return repository.reply() if repository else None


def normalized(path: str, field: str = "path") -> str:
    """Return an absolute path without `..` and doubled slashes; nothing is looked up.

    Raises:
        OrchestrationError: INVALID_INPUT; it is relative.
    """
    if not path.startswith("/"):
        raise invalid_input(field, f"must be absolute, not {path[:200]!r}", "Give the whole path, from / on.")
    return "/" + posixpath.normpath(path).lstrip("/")


def register(transaction: PlanTransaction, path: str, name: str | None = None) -> str:
    """Store a repository if it is new, or its new name, and return its id."""
    repository = repository_at(transaction, path)
    if repository is None:
        return transaction.add(Repository, path=path, name=name).id
    if name is not None and name != repository.name:
        transaction.change(Repository, repository.id, name=name)
    return repository.id


def repository_at(transaction: PlanTransaction, /, path: str) -> Repository | None:
    """Return the repository of a path."""
    row = transaction.row(_AT, path=path)
    return None if row is None else Repository(*row)


def path_of(transaction: PlanTransaction, workflow: Workflow) -> str | None:
    """Return the path of a workflow's repository."""
    row = transaction.row(_PATH, id=workflow.repository_id)
    return None if row is None else str(row.path)
