"""The types of values, in words of JSON: an agent knows no others."""

from __future__ import annotations

import json
from typing import Any

_WORDS = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}


def json_type(value: Any) -> str:
    """Return the type of a value; null, true and false are their own names."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _WORDS.get(type(value), type(value).__name__)
