"""Text that one of the engines cannot hold is refused on both, by the name of its field."""

from __future__ import annotations

import json
import re
from typing import Any

from deepwork_sql.errors import UnstorableText

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """True if both engines can hold a text."""
    return _UNSTORABLE.search(text) is None


def check_text(field: str, value: str) -> None:
    """Refuse a text with a NUL or with half of a surrogate pair.

    Raises:
        UnstorableText: It has one; the error names the field and the place.
    """
    if match := _UNSTORABLE.search(value):
        character = "NUL" if match[0] == "\0" else f"half a surrogate pair (U+{ord(match[0]):04X})"
        raise UnstorableText(
            f"{field}: the character at position {match.start()} is {character}, which cannot be stored",
            field=field,
            hint="Remove it, and call again.",
        )


def check_json(field: str, value: Any) -> None:
    """Refuse such a text anywhere in a value, keys included.

    Raises:
        UnstorableText: There is one; the error names the place, such as `plan.steps[2].name`.
    """
    if isinstance(value, str):
        check_text(field, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(f"{field} (a key)", str(key))
            check_json(f"{field}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_json(f"{field}[{index}]", item)


def dumps(value: Any) -> str:
    """Write JSON as short as it can be, with every text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
