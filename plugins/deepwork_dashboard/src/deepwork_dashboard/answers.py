"""What the API answers: JSON, lists in pages, times in one form, and errors as people read them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from deepwork.errors import (
    ArgumentError,
    DeepWorkError,
    ItemChanged,
    PersonNeeded,
    StateError,
    StorageError,
    UnknownSession,
)
from deepwork.text import is_blank

Mapped = dict[str, Any]
# Answers a request with plain values, or raises an error of ours.
View = Callable[[Request], Awaitable[Any]]

MAX_LIMIT = 500
DEFAULT_LIMIT = 50
# Of what a person says to agents.
MAX_TEXT = 10_000


class NotThere(DeepWorkError):
    """There is no such thing, or it is not the caller's."""


class Conflict(DeepWorkError):
    """What is asked for cannot be done as things are."""


def answer(value: Any, status: int = 200) -> Response:
    """Make an answer of plain values. Surrogates, which JSON could not carry, are replaced."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(errors="replace"), status, media_type="application/json")


def failure(status: int, message: str, hint: str | None = None) -> Response:
    """Make the answer that says what is wrong."""
    return answer({"error": {"message": message, "hint": hint}}, status)


def status_of(error: DeepWorkError) -> int:
    """Return the status of the answer to an error."""
    code = getattr(error, "code", "")
    if isinstance(error, NotThere | UnknownSession) or code.endswith("NOT_FOUND"):
        return 404
    if isinstance(error, PersonNeeded):
        return 403
    if isinstance(error, StorageError) or code == "DATABASE_ERROR":
        return 503
    if isinstance(error, Conflict | ItemChanged | StateError) or code == "INVALID_STATE":
        return 409
    return 400


def endpoint(view: View) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a view."""

    async def serve(request: Request) -> Response:
        try:
            return answer(await view(request))
        except DeepWorkError as error:
            return failure(status_of(error), error.message, error.hint)

    return serve


# Parameters


async def json_body(request: Request) -> Mapped:
    """Read the object that is the body of a request.

    Raises:
        ArgumentError: It is something else.
    """
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ArgumentError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise ArgumentError("the body is not an object")
    return body


async def intervention_of(request: Request, *names: str) -> tuple[str, str]:
    """Read what a person does to what agents work on, and what they say to them; an empty text if that is nothing.

    Raises:
        ArgumentError: It is none of these, or lacks its text.
    """
    body = await json_body(request)
    action, text = body.get("action"), body.get("text")
    if action not in names:
        raise ArgumentError(f"action is one of: {', '.join(names)}")
    if text is None and action != "unpause":
        raise ArgumentError(f"to {action}, text is a text")
    if text is not None and (not isinstance(text, str) or is_blank(text) or len(text) > MAX_TEXT):
        raise ArgumentError(f"text has from 1 to {MAX_TEXT:,} characters")
    return action, text or ""


def limit_of(request: Request) -> int:
    """Read the length of a page.

    Raises:
        ArgumentError: It is not a number in the range.
    """
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MAX_LIMIT):
        raise ArgumentError(f"limit is {text[:20]!r}; it is a number from 1 to {MAX_LIMIT}")
    return int(text)


def offset_of(request: Request) -> int:
    """Read where a page of a numbered list begins.

    Raises:
        ArgumentError: The cursor is not a valid one.
    """
    text = request.query_params.get("cursor") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ArgumentError(f"cursor is {text[:40]!r}; give the `next` of the page before")
    return int(text)


def page_of(request: Request) -> Mapped:
    """Read what lists are asked by: their words and their page."""
    return {"words": words_of(request), "limit": limit_of(request), "offset": offset_of(request)}


def words_of(request: Request) -> list[str]:
    """Read the words of a search, in one case."""
    return request.query_params.get("q", "")[:500].casefold().split()


def matches(words: Iterable[str], *texts: Any) -> bool:
    """True if all words occur in the texts."""
    whole = "\n".join(str(text) for text in texts if text is not None).casefold()
    return all(word in whole for word in words)


# Parts of answers


def page(items: list[Any], total: int, limit: int, offset: int) -> Mapped:
    """Return one page of a list whose length is known."""
    end = offset + limit
    return {"items": items, "next": str(end) if end < total else None, "total": total}


def cut(items: list[Any], request: Request) -> Mapped:
    """Return the page of a whole list that is asked for."""
    limit, offset = limit_of(request), offset_of(request)
    return page(items[offset : offset + limit], len(items), limit, offset)


def iso(milliseconds: int | None) -> str | None:
    """Write a time of a database."""
    if milliseconds is None:
        return None
    return _written(datetime.fromtimestamp(milliseconds / 1000, UTC))


def iso_text(text: str | None) -> str | None:
    """Write a time that is stored as text; another text is returned as it is."""
    if text is None:
        return None
    try:
        return _written(datetime.fromisoformat(text).astimezone(UTC))
    except ValueError:
        return text


def now() -> str:
    """Return the time of this machine."""
    return _written(datetime.now(UTC))


def short(text: str | None, length: int = 200) -> str | None:
    """Cut a text."""
    return text if text is None or len(text) <= length else f"{text[: length - 1]}…"


def chosen(values: Mapping[str, Any], *names: str) -> Mapped:
    """Return some of the values."""
    return {name: values.get(name) for name in names}


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
