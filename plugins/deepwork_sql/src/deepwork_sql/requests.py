"""Requests that are carried out once, however often they arrive."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, insert, select, update

from deepwork_sql.errors import RequestConflict
from deepwork_sql.tables import requests
from deepwork_sql.text import check_text
from deepwork_sql.transaction import Transaction

KEPT_MILLISECONDS = 24 * 3600 * 1000

Key = tuple[str, str, str]


def once(transaction: Transaction, key: Key, arguments: Mapping[str, Any], work: Callable[[], Any]) -> Any:
    """Do the work, or give the result that is recorded for this key. Work that raises is not recorded."""
    for field, text in zip(("principal", "tool", "request_id"), key, strict=True):
        check_text(field, text)
    digest = sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
    transaction.lock("deepwork:request:" + "\x1f".join(key))
    row = transaction.execute(select(requests.c.arguments, requests.c.result, requests.c.at).where(_is(key))).first()
    if row is not None and row.at > transaction.now - KEPT_MILLISECONDS:
        if row.arguments != digest:
            raise RequestConflict(
                f"request_id {key[2]!r} was used for {key[1]} before, with other arguments",
                hint="Give a new request another request_id.",
            )
        return row.result
    result = work()
    _record(transaction, key, digest, result, is_new=row is None)
    return result


def forget_old_requests(transaction: Transaction) -> None:
    """Delete the requests that are too old to be repeated."""
    transaction.execute(delete(requests).where(requests.c.at <= transaction.now - KEPT_MILLISECONDS))


def _record(transaction: Transaction, key: Key, digest: str, result: Any, *, is_new: bool) -> None:
    values = {"arguments": digest, "result": result, "at": transaction.now}
    if is_new:
        principal, tool, request_id = key
        keys = {"principal": principal, "tool": tool, "request_id": request_id}
        transaction.execute(insert(requests).values(**keys, **values))
    else:
        transaction.execute(update(requests).where(_is(key)).values(**values))


def _is(key: Key) -> Any:
    principal, tool, request_id = key
    return (requests.c.principal == principal) & (requests.c.tool == tool) & (requests.c.request_id == request_id)
