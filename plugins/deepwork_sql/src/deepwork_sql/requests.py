"""Requests that are carried out once, however often they arrive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from deepwork_sql.errors import RequestConflict
from deepwork_sql.statement import Statement
from deepwork_sql.text import check_text

if TYPE_CHECKING:
    from sqlalchemy import Connection

KEPT_MILLISECONDS = 24 * 3600 * 1000

_OF_KEY = "principal = :principal AND tool = :tool AND request_id = :request_id"
_STORED = Statement(f"SELECT arguments, result, at FROM deepwork_requests WHERE {_OF_KEY}", json=["result"])
_INSERT = Statement(
    "INSERT INTO deepwork_requests (principal, tool, request_id, arguments, result, at) "
    "VALUES (:principal, :tool, :request_id, :arguments, :result, :at)",
    json=["result"],
)
_UPDATE = Statement(
    f"UPDATE deepwork_requests SET arguments = :arguments, result = :result, at = :at WHERE {_OF_KEY}", json=["result"]
)
# Deletes the requests that are too old to be repeated: those until `until`.
FORGET = Statement("DELETE FROM deepwork_requests WHERE at <= :until")


class Answer(NamedTuple):
    """The recorded result of a request."""

    result: Any


class Request:
    """One request in one transaction, by principal, tool and request id: what is recorded of it, and what is to be."""

    def __init__(
        self, connection: Connection, key: tuple[str, str, str], arguments: Mapping[str, Any], now: int
    ) -> None:
        self._connection = connection
        self._key = dict(zip(("principal", "tool", "request_id"), key, strict=True))
        for field, text in self._key.items():
            check_text(field, text)
        self._digest = sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
        self._now = now
        self._is_new = True

    @property
    def lock(self) -> str:
        """The name of the lock that lets one transaction at a time answer the request."""
        return "deepwork:request:" + "\x1f".join(self._key.values())

    def answer(self) -> Answer | None:
        """Return what is recorded for the request; None if it was not made in the last 24 hours.

        Raises:
            RequestConflict: It was made with other arguments.
        """
        rows = _STORED.rows(self._connection, self._key)
        self._is_new = not rows
        if not rows or rows[0].at <= self._now - KEPT_MILLISECONDS:
            return None
        if rows[0].arguments != self._digest:
            raise RequestConflict(
                f"request_id {self._key['request_id']!r} was used for {self._key['tool']} before, with other arguments",
                hint="Give a new request another request_id.",
            )
        return Answer(rows[0].result)

    def record(self, result: Any) -> None:
        """Write down the result, once `answer` has returned None."""
        values = {"arguments": self._digest, "result": result, "at": self._now}
        (_INSERT if self._is_new else _UPDATE).run(self._connection, {**self._key, **values})
