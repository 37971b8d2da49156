"""The types of values, in words of JSON: an agent knows no others."""

from __future__ import annotations

from typing import Any

_WORDS = {bool: "true or false", str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}


def json_type(value: Any) -> str:
    """Name the type of a value."""
    return "null" if value is None else _WORDS.get(type(value), type(value).__name__)
