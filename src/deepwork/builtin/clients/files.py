"""Changes of a client's file that are made only if a second parser reads everything else as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deepwork.builtin.clients.json_text import JsonSyntax
from deepwork.builtin.clients.text_edits import Unreadable
from deepwork.builtin.clients.toml_text import TomlSyntax
from deepwork.errors import ConfigError

# The format of a client's file: it reads a text by its places, to change it, and by another parser, to check that.
Syntax = JsonSyntax | TomlSyntax


def decoded(content: bytes) -> str:
    """Return the text of a file.

    Raises:
        Unreadable: It is not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        text = content[: error.start].decode()
        raise Unreadable(text, len(text), "the file is not UTF-8") from None


def get(data: Any, keys: Sequence[str]) -> Any:
    """Return the value under these keys, or None."""
    for key in keys:
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def with_entry(text: str, syntax: Syntax, keys: Sequence[str], entry: dict[str, Any]) -> str:
    """Return a text with this entry under these keys, and everything else unchanged.

    Raises:
        Unreadable: The text cannot be parsed.
        ConfigError: The result would differ from the intended change.
    """
    document = syntax.document(text)
    if get(syntax.data(text), keys) == entry:
        return text
    result = document.with_member(keys, entry)
    return _checked(text, result, syntax, lambda data: _put(data, keys, entry))


def without_entry(text: str, syntax: Syntax, keys: Sequence[str]) -> str:
    """Return a text without the entry under these keys, and everything else unchanged.

    Raises:
        Unreadable: The text cannot be parsed.
        ConfigError: The result would differ from the intended change.
    """
    result = syntax.document(text).without_member(keys)
    return _checked(text, result, syntax, lambda data: _remove(data, keys))


def with_element(text: str, syntax: JsonSyntax, keys: Sequence[str], element: Any) -> str:
    """Return a text with one more element in the list under these keys, and everything else unchanged.

    Raises:
        Unreadable: The text cannot be parsed.
        ConfigError: The result would differ from the intended change.
    """
    result = syntax.document(text).with_element(keys, element)
    return _checked(text, result, syntax, lambda data: _put(data, keys, [*(get(data, keys) or []), element]))


def without_element(text: str, syntax: JsonSyntax, keys: Sequence[str], index: int) -> str:
    """Return a text without one element of the list under these keys, and everything else unchanged.

    Raises:
        Unreadable: The text cannot be parsed.
        ConfigError: The result would differ from the intended change.
    """
    result = syntax.document(text).without_element(keys, index)
    return _checked(text, result, syntax, lambda data: get(data, keys).pop(index))


def _put(data: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        data = data.setdefault(key, {})
    data[keys[-1]] = value


def _remove(data: dict[str, Any], keys: Sequence[str]) -> None:
    container = get(data, keys[:-1])
    if isinstance(container, dict):
        container.pop(keys[-1], None)


def _checked(text: str, result: str, syntax: Syntax, change: Callable[[Any], object]) -> str:
    """Return `result` if an independent parser sees exactly the intended change.

    Raises:
        ConfigError: It sees something else.
    """
    expected = syntax.data(text)
    change(expected)
    try:
        same = _without_empty(syntax.data(result)) == _without_empty(expected)
    except ValueError:
        same = False
    if not same:
        raise ConfigError("it is written in a way that cannot be changed safely")
    return result


def _without_empty(data: Any) -> Any:
    """Leave out empty objects: TOML has no table without a statement that makes it."""
    if not isinstance(data, dict):
        return data
    members = {key: _without_empty(value) for key, value in data.items()}
    return {key: value for key, value in members.items() if value != {}}
