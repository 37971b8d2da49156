"""A document that was read: its data, the line of each value, and its validation by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import yaml

from deepwork.documents.problems import MAX_PROBLEMS, DocumentError, Location, Problem, inside, keys_at, location_in
from deepwork.text import quoted

if TYPE_CHECKING:
    from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound="BaseModel")

# What pydantic calls a type, in words of YAML.
_ALLOWED = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "bool_type": "true or false",
    "int_type": "a whole number",
}

_TEXT_TAG = "tag:yaml.org,2002:str"
_MERGE_TAG = "tag:yaml.org,2002:merge"


class Scalar(NamedTuple):
    """A key or a value of a document, and where it stands; lines and columns count from 0.

    Attributes:
        location: Where the value is; that of a key is the location of its value.
    """

    text: str
    location: tuple[str | int, ...]
    is_key: bool
    line: int
    column: int
    end_line: int
    end_column: int


class Document:
    """A parsed document that still knows on which line each value stands."""

    def __init__(self, data: Any, root: yaml.Node | None) -> None:
        self.data = data
        self._root = root

    def line(self, *location: str | int) -> int | None:
        """Find the line of the value at this location, or of the nearest value above it."""
        node, line = self._root, self._root.start_mark.line + 1 if self._root else None
        for part in location:
            child = _child(node, part)
            if child is None:
                break
            line, node = child
        return line

    def scalars(self) -> Iterator[Scalar]:
        """Yield every key and value, as they are written; what an alias stands for comes once."""
        seen: set[int] = set()
        open_nodes: list[tuple[yaml.Node, tuple[str | int, ...]]] = [(self._root, ())] if self._root else []
        while open_nodes:
            node, location = open_nodes.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if isinstance(key, yaml.ScalarNode):
                        yield _scalar(key, (*location, key.value), is_key=True)
                        open_nodes.append((value, (*location, key.value)))
            elif isinstance(node, yaml.SequenceNode):
                open_nodes += [(item, (*location, index)) for index, item in enumerate(node.value)]
            elif isinstance(node, yaml.ScalarNode):
                yield _scalar(node, location, is_key=False)

    def validate(self, model: type[ModelT], *, patterns: Mapping[str, str] | None = None) -> ModelT:
        """Make a model of the document.

        Args:
            model: The model.
            patterns: What the patterns of its texts allow, in words.

        Raises:
            DocumentError: With a line and a sentence for everything that does not fit.
        """
        from pydantic import ValidationError

        try:
            return model.model_validate({} if self.data is None else self.data)
        except ValidationError as error:
            details = error.errors(include_url=False)
            problems = [self._problem(model, detail, patterns or {}) for detail in details[:MAX_PROBLEMS]]
            raise DocumentError(*problems, more=len(details) - len(problems)) from None

    def _problem(self, model: type[BaseModel], detail: Any, patterns: Mapping[str, str]) -> Problem:
        """Put an error of pydantic into words for the author of the document."""
        kind, pydantic_location = detail["type"], detail["loc"]
        if kind == "invalid_key" or (kind == "string_type" and pydantic_location[-1:] == ("[key]",)):
            return self._key_problem(detail)
        data = {} if self.data is None else self.data
        location = location_in(data, pydantic_location, missing=kind == "missing")
        if kind == "missing":
            return Problem(f"{inside(location[:-1])}{location[-1]!r} is missing", self.line(*location[:-1]))
        if kind == "extra_forbidden":
            key = str(location[-1])
            message = f"{inside(location[:-1])}unknown key {quoted(key)}"
            return Problem(message, self.line(*location), (key, keys_at(model, pydantic_location[:-1])))
        return Problem(f"{inside(location)}{_wording(detail, patterns)}", self.line(*location))

    def _key_problem(self, detail: Any) -> Problem:
        parts = 2 if detail["loc"][-1:] == ("[key]",) else 1  # what pydantic adds for the key
        location = location_in(self.data, detail["loc"][:-parts])
        message = f"{inside(location)}a key is not text{_found(detail['input'])}; put it in quotes"
        return Problem(message, self._line_of_bad_key(location))

    def _line_of_bad_key(self, location: Location) -> int | None:
        """Find the first key of a mapping that PyYAML has turned into a number, a date or the like."""
        node = self._root
        for part in location:
            child = _child(node, part)
            node = child[1] if child else None
        keys = [key for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        lines = [key.start_mark.line + 1 for key in keys if key.tag not in (_TEXT_TAG, _MERGE_TAG)]
        return lines[0] if lines else self.line(*location)


def _scalar(node: yaml.ScalarNode, location: tuple[str | int, ...], *, is_key: bool) -> Scalar:
    start, end = node.start_mark, node.end_mark
    return Scalar(node.value, location, is_key, start.line, start.column, end.line, end.column)


def _child(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # merged keys stand before the mapping's own
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
        return child.start_mark.line + 1, child
    return None


def _found(value: Any) -> str:
    """Show a value as YAML writes it; a list or mapping would be too long."""
    if isinstance(value, dict | list):
        return ""
    return f" (found {str(value).lower() if isinstance(value, bool) else quoted(value)})"


def _wording(detail: Any, patterns: Mapping[str, str]) -> str:
    """Describe what is allowed, in words of YAML instead of pydantic's."""
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if value is None and kind in _ALLOWED:
        return f"has no value; it should be {_ALLOWED[kind]}"
    if kind == "string_type" and not isinstance(value, dict | list):
        return f"should be text{_found(value)}; put it in quotes"
    if kind in _ALLOWED:
        return f"should be {_ALLOWED[kind]}{_found(value)}"
    if kind == "string_pattern_mismatch" and context["pattern"] in patterns:
        return f"should be {patterns[context['pattern']]}{_found(value)}"
    if kind in ("string_too_short", "too_short") and context["min_length"] == 1:
        return "should not be empty"
    if kind == "string_too_long":
        return f"has {len(value):,} characters; at most {context['max_length']} are allowed"
    words = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return f"{words[:1].lower()}{words[1:]}{_found(value)}"
