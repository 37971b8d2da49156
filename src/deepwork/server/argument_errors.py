"""What is wrong with the arguments of a call, in words of JSON: an agent knows neither Python nor pydantic."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastmcp.exceptions import ToolError, ValidationError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError as PydanticError

from deepwork.documents.problems import location_in
from deepwork.text import json_type, nearest, quoted, visible

MAX_ERRORS = 50
MAX_LINES = 10
MAX_SHOWN = 80

# An argument, one of a function whose parameters have no order, and a key of an object.
_MISSING = ("missing_argument", "missing_keyword_only_argument", "missing")
_PATH_ARGUMENTS = ("outputs", "files")
_PATH_WORDS = {"a string": "a path", "a list": "a list of paths"}


class _Wanted(NamedTuple):
    """What an error of pydantic asks for: the type of right values ("" if there are several), in words for an agent."""

    json: str
    words: str
    is_length: bool = False

    def fits(self, value: Any) -> bool:
        """Return whether the type of a refused value was right."""
        if self.json == "":
            return self.is_length or not isinstance(value, list | dict)
        return self.json == (_BOOLEAN if isinstance(value, bool) else json_type(value))


_STRING, _LIST, _OBJECT, _BOOLEAN = "a string", "a list", "an object", "true or false"
_NUMBER, _WHOLE = "a number", "a whole number"
_TIME, _DATE = "a time as '2026-01-31T12:00:00Z'", "a date as '2026-01-31'"

# Each error that a value of JSON can cause. Names in braces are pydantic's own facts about the error.
_TABLE: Mapping[str, _Wanted] = {
    **dict.fromkeys(("string_type", "bytes_type", "string_unicode"), _Wanted(_STRING, _STRING)),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "deque_type"), _Wanted(_LIST, _LIST)),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type", "named_tuple_type"),
        _Wanted(_OBJECT, _OBJECT),
    ),
    **dict.fromkeys(("bool_type", "bool_parsing"), _Wanted(_BOOLEAN, _BOOLEAN)),
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), _Wanted(_NUMBER, _WHOLE)),
    **dict.fromkeys(
        ("float_type", "float_parsing", "finite_number", "decimal_type", "decimal_parsing"), _Wanted(_NUMBER, _NUMBER)
    ),
    **dict.fromkeys(("literal_error", "enum"), _Wanted("", "{expected}")),
    "none_required": _Wanted("null", "null"),
    "greater_than": _Wanted(_NUMBER, "a number above {gt}"),
    "greater_than_equal": _Wanted(_NUMBER, "{ge} or more"),
    "less_than": _Wanted(_NUMBER, "a number below {lt}"),
    "less_than_equal": _Wanted(_NUMBER, "{le} or less"),
    "multiple_of": _Wanted(_NUMBER, "a multiple of {multiple_of}"),
    "string_too_short": _Wanted(_STRING, "{min_length} or more characters", is_length=True),
    "string_too_long": _Wanted(_STRING, "{max_length} characters at most", is_length=True),
    "too_short": _Wanted("", "{min_length} or more items", is_length=True),
    "too_long": _Wanted("", "{max_length} items at most", is_length=True),
    "string_pattern_mismatch": _Wanted(_STRING, "a string that matches {pattern}"),
    "string_not_ascii": _Wanted(_STRING, "a string of ASCII characters"),
    **dict.fromkeys(
        ("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"),
        _Wanted(_STRING, _DATE),
    ),
    "date_past": _Wanted(_STRING, f"{_DATE}, in the past"),
    "date_future": _Wanted(_STRING, f"{_DATE}, in the future"),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_object_invalid", "datetime_from_date_parsing"),
        _Wanted(_STRING, _TIME),
    ),
    "datetime_past": _Wanted(_STRING, f"{_TIME}, in the past"),
    "datetime_future": _Wanted(_STRING, f"{_TIME}, in the future"),
    "timezone_naive": _Wanted(_STRING, "a time without a zone"),
    **dict.fromkeys(("timezone_aware", "timezone_offset"), _Wanted(_STRING, "a time with its zone")),
    **dict.fromkeys(("time_type", "time_parsing"), _Wanted(_STRING, "a time of day as '12:00:00'")),
    **dict.fromkeys(("time_delta_type", "time_delta_parsing"), _Wanted(_STRING, "a duration as 'PT1H30M'")),
    **dict.fromkeys(("url_type", "url_parsing", "url_syntax_violation"), _Wanted(_STRING, "a URL")),
    "url_scheme": _Wanted(_STRING, "a URL that begins with {expected_schemes}"),
    "url_too_long": _Wanted(_STRING, "{max_length} characters at most", is_length=True),
    **dict.fromkeys(("uuid_type", "uuid_parsing", "uuid_version"), _Wanted(_STRING, "a UUID")),
    **dict.fromkeys(
        ("decimal_max_digits", "decimal_max_places", "decimal_whole_digits"),
        _Wanted(_NUMBER, "a number with fewer digits"),
    ),
    **dict.fromkeys(
        ("bytes_too_short", "bytes_too_long", "bytes_invalid_encoding"), _Wanted(_STRING, "a string of another length")
    ),
}
_UNLISTED = _Wanted("", "a value that the schema of the tool allows")


def argument_error(
    tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any], error: ValidationError
) -> ToolError:
    """Return the error that names each invalid argument, its value or type, and what would be right."""
    cause = error.__cause__
    if not isinstance(cause, PydanticError):
        return ToolError(f"{tool}: the arguments are invalid", log_level=logging.DEBUG)
    valid = list(schema.get("properties", {}))
    problems: dict[tuple[str | int, ...], list[Any]] = {}
    for detail in cause.errors(include_url=False)[:MAX_ERRORS]:
        location = tuple(location_in(arguments, detail["loc"], missing=detail["type"] in _MISSING))
        problems.setdefault(location, []).append(detail)
    # pydantic reports one error per member of a union. Keep the deepest: it belongs to the member the caller meant.
    deepest = [
        location
        for location in problems
        if not any(len(deeper) > len(location) and deeper[: len(location)] == location for deeper in problems)
    ]
    lines = [f"{_dotted(location)}: {_sentence(location, problems[location], valid)}" for location in deepest]
    return ToolError(
        f"{tool}: wrong arguments; nothing was changed\n" + "\n".join(lines[:MAX_LINES]), log_level=logging.DEBUG
    )


def params_error(error: PydanticError) -> MCPError:
    """Return the error that names the invalid fields of a request; the SDK says only that there are some."""
    details = error.errors(include_url=False)[:3]
    problems = [f"{_dotted(detail['loc'])}: {_sentence(detail['loc'], [detail], [])}" for detail in details]
    return MCPError(INVALID_PARAMS, f"Invalid params: {'; '.join(problems)}")


def _sentence(location: Sequence[str | int], details: Sequence[Any], valid: list[str]) -> str:
    """Describe a valid value; pydantic reports one error for each allowed type."""
    first = details[0]
    if first["type"] in _MISSING:
        return "is required"
    if first["type"] == "extra_forbidden":
        return "is not a key of this object"
    if first["type"] == "unexpected_keyword_argument":
        return f"is not a parameter{nearest(str(first['loc'][-1]), valid) or '; this tool takes none'}"
    stated = next((detail["ctx"]["error"] for detail in details if detail["type"] in _STATED), None)
    if stated is not None:  # a validator has its own sentence about the value
        return str(stated)[:500]
    return _wanted_and_sent(location, details)


_STATED = ("value_error", "assertion_error")


def _wanted_and_sent(location: Sequence[str | int], details: Sequence[Any]) -> str:
    value = details[0]["input"]
    rows = [(_TABLE.get(detail["type"], _UNLISTED), detail.get("ctx", {})) for detail in details]
    # Of several types that are allowed, the caller meant the one whose type is right.
    fitting = [(kind, facts) for kind, facts in rows if kind.fits(value)]
    chosen = fitting or [(kind, facts) for kind, facts in rows if kind.json != "null"] or rows
    words = list(dict.fromkeys(kind.words.format_map(_in_words(facts)) for kind, facts in chosen))
    if _NUMBER in words and _WHOLE in words:
        words.remove(_WHOLE)
    if location[0] in _PATH_ARGUMENTS and len(location) > 1:
        words = [_PATH_WORDS.get(word, word) for word in words]
    sent = _shown(value, is_length=chosen[0][0].is_length) if fitting else json_type(value)
    return f"give {' or '.join(words)}, not {sent}"


def _in_words(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: _number(fact) if isinstance(fact, int | float) else str(fact) for name, fact in facts.items()}


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def _shown(value: Any, *, is_length: bool) -> str:
    """Return the value itself, or its length; of a list or an object the type."""
    if is_length:
        return f"{len(value):,}"
    if isinstance(value, list | dict | bool) or value is None:
        return json_type(value)
    return quoted(value, MAX_SHOWN)


def _dotted(location: Sequence[str | int]) -> str:
    return visible(".".join(map(str, location))[:200])
