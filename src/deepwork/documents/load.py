"""Strict YAML documents: bounded, without duplicate keys, and every problem with its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from deepwork.documents.document import Document
from deepwork.documents.limits import MAX_BYTES, MAX_NUMBER, SafeLoader, check_limits
from deepwork.documents.problems import DocumentError, Problem
from deepwork.text import quoted


class _StrictLoader(SafeLoader):  # type: ignore[misc]  # chosen at run time
    """Plain YAML 1.1 types only, and no key twice in one mapping."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._expanded: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Expand `<<` merge keys once per node; PyYAML calls this again for nodes that were merged earlier."""
        if id(node) not in self._expanded:
            self._expanded.add(id(node))
            self._refuse_duplicates(node)
            super().flatten_mapping(node)

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        first_lines: dict[tuple[str, Any], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in first_lines:
                message = f"key {quoted(key.value)} is used twice, first in line {first_lines[name]}"
                raise DocumentError(Problem(message, line))
            first_lines[name] = line


def _bounded(read: Callable[[Any, yaml.ScalarNode], Any]) -> Callable[[Any, yaml.ScalarNode], Any]:
    """Read a number or date; PyYAML alone takes quadratic time for long ones and names no line."""

    def construct(loader: Any, node: yaml.Node) -> Any:
        line, kind = node.start_mark.line + 1, node.tag.rpartition(":")[2]
        if not isinstance(node, yaml.ScalarNode):
            raise DocumentError(Problem(f"a collection cannot be read as {kind}", line))
        if len(node.value) > MAX_NUMBER:
            raise DocumentError(Problem(f"a number of more than {MAX_NUMBER} digits", line))
        try:
            return read(loader, node)
        except (ValueError, OverflowError) as error:
            raise DocumentError(Problem(f"{quoted(node.value)} cannot be read: {error}", line)) from None
        except (LookupError, AttributeError):  # PyYAML does not check what a tag such as `!!bool` is put before
            raise DocumentError(Problem(f"{quoted(node.value)} cannot be read as {kind}", line)) from None

    return construct


for _tag, _read in (
    ("bool", yaml.SafeLoader.construct_yaml_bool),
    ("int", yaml.SafeLoader.construct_yaml_int),
    ("float", yaml.SafeLoader.construct_yaml_float),
    ("timestamp", yaml.SafeLoader.construct_yaml_timestamp),
):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _bounded(_read))


def read_document(content: bytes) -> Document:
    """Parse YAML bytes within the limits for size, depth and nodes.

    Raises:
        DocumentError: Whatever is wrong with the bytes; no other error is raised.
    """
    text = _decode(content)
    try:
        check_limits(text)
        return _load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = [part for part in (error.context, error.problem) if part]
        line = mark.line + 1 if mark else None
        raise DocumentError(Problem(_in_words(error, text) or ", ".join(parts), line)) from None
    except yaml.reader.ReaderError:
        raise DocumentError(_forbidden_character(text)) from None
    except (ValueError, OverflowError, yaml.YAMLError, RecursionError) as error:
        raise DocumentError(Problem(f"a value cannot be read: {error}")) from None


def _in_words(error: yaml.MarkedYAMLError, text: str) -> str | None:
    """Word the two mistakes that people make most often; None for any other."""
    if error.problem == "mapping values are not allowed in this context":
        return "a second ': ' in one line; put the text that contains it in quotes"
    if "found a tab character" in str(error.problem):
        return "a tab; YAML indents with spaces"
    mark = error.problem_mark
    if error.problem == "found character that cannot start any token" and mark is not None:
        lines = text.split("\n")
        char = lines[mark.line][mark.column : mark.column + 1] if mark.line < len(lines) else ""
        return (
            "a tab; YAML indents with spaces" if char == "\t" else f"text cannot begin with {char!r}; put it in quotes"
        )
    return None


def _load(text: str) -> Document:
    loader = _StrictLoader(text)
    try:
        root = loader.get_single_node()
        return Document(None if root is None else loader.construct_document(root), root)
    finally:
        loader.dispose()


def _decode(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise DocumentError(Problem(f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(Problem(f"byte 0x{content[error.start]:02x} is not UTF-8", line)) from None


def _forbidden_character(text: str) -> Problem:
    """Find the character that the reader has refused; libyaml gives its place in bytes, not in characters."""
    match = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if match is None:
        return Problem("a character is not allowed")
    line = text.count("\n", 0, match.start()) + 1
    return Problem(f"character #x{ord(match.group()):04x} is not allowed", line)
