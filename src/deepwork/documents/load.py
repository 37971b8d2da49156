"""Strict YAML documents: bounded, without duplicate keys, and every problem with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from deepwork.documents.problems import MAX_PROBLEMS, DocumentError, Location, Problem, inside, keys_at, location_in
from deepwork.text.escape import quoted

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_NUMBER = 500
FLAT_SIZE = 64 * 1024
MAX_DIRECTIVES = 100

ModelT = TypeVar("ModelT", bound=BaseModel)


_LINE_START = re.compile(r"^[\s?:-]*", re.MULTILINE)
_LONG_NUMBER = re.compile(rf"[0-9_:.+-]{{{MAX_NUMBER + 1}}}")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc]  # chosen at run time: PyYAML may lack libyaml
    """Plain YAML 1.1 types only, and no key twice in one mapping."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._flat: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Put merged keys before a mapping's own, once: a mapping can be merged before it is built itself."""
        if id(node) not in self._flat:
            self._flat.add(id(node))
            self._refuse_duplicates(node)
            super().flatten_mapping(node)

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[tuple[str, Any], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            name, line = (key.tag, key.value), key.start_mark.line + 1
            if name in seen:
                raise DocumentError(
                    Problem(f"key {quoted(key.value)} stands here again, first in line {seen[name]}", line)
                )
            seen[name] = line


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
        except (LookupError, AttributeError):  # what PyYAML lets through, as for `!!bool perhaps`
            raise DocumentError(Problem(f"{quoted(node.value)} cannot be read as {kind}", line)) from None

    return construct


for _tag, _read in (
    ("bool", yaml.SafeLoader.construct_yaml_bool),
    ("int", yaml.SafeLoader.construct_yaml_int),
    ("float", yaml.SafeLoader.construct_yaml_float),
    ("timestamp", yaml.SafeLoader.construct_yaml_timestamp),
):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _bounded(_read))


class Document:
    """A parsed document that still knows on which line each value stands."""

    def __init__(self, data: Any, root: yaml.Node | None) -> None:
        self.data = data
        self._root = root

    def line(self, *location: str | int) -> int | None:
        """Find the line of the value at this location, or of the nearest value above it."""
        node, line = self._root, self._root.start_mark.line + 1 if self._root else None
        for part in location:
            found = _child(node, part)
            if found is None:
                break
            line, node = found
        return line

    def validate(self, model: type[ModelT]) -> ModelT:
        """Make a model of the document.

        Raises:
            DocumentError: With a line and a sentence for everything that does not fit.
        """
        try:
            return model.model_validate({} if self.data is None else self.data)
        except ValidationError as error:
            details = error.errors(include_url=False)
            problems = [self._problem(model, detail) for detail in details[:MAX_PROBLEMS]]
            raise DocumentError(*problems, more=len(details) - len(problems)) from None

    def _problem(self, model: type[BaseModel], detail: Any) -> Problem:
        missing = detail["type"] == "missing"
        location = location_in({} if self.data is None else self.data, detail["loc"], missing=missing)
        given = "" if isinstance(detail["input"], dict | list) else f" (found {quoted(detail['input'])})"
        if detail["type"] == "extra_forbidden":
            key = str(location[-1])
            message = f"{inside(location[:-1])}unknown key {quoted(key)}"
            return Problem(message, self.line(*location), (key, keys_at(model, detail["loc"][:-1])))
        if missing:
            return Problem(f"{inside(location[:-1])}{location[-1]!r} is missing", self.line(*location[:-1]))
        in_key = detail["loc"][-1:] == ("[key]",)
        if detail["type"] == "invalid_key" or (in_key and detail["type"] == "string_type"):
            above = location_in(self.data, detail["loc"][: -2 if in_key else -1])
            return Problem(f"{inside(above)}a key is no text{given}; put it in quotes", self._line_of_odd_key(above))
        words = detail["msg"].removeprefix("Value error, ").replace(" after validation", "")
        words = (
            "input should be a mapping"
            if detail["type"] in ("model_type", "dict_type")
            else words[:1].lower() + words[1:]
        )
        return Problem(f"{inside(location)}{words}{given}", self.line(*location))

    def _line_of_odd_key(self, location: Location) -> int | None:
        """Find the first key of a mapping that is no text: PyYAML has made a number or the like of it."""
        node = self._root
        for part in location:
            found = _child(node, part)
            node = found[1] if found else None
        keys = [key for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        odd = [key for key in keys if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")]
        return odd[0].start_mark.line + 1 if odd else self.line(*location)


def read_document(content: bytes) -> Document:
    """Parse YAML bytes within the limits for size, depth and nodes.

    Raises:
        DocumentError: Whatever is wrong with the bytes; nothing else escapes.
    """
    text = _decode(content)
    try:
        _refuse_bombs(text)
        loader = _StrictLoader(text)
        try:
            root = loader.get_single_node()
            data = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = [part for part in (error.context, error.problem) if part]
        raise DocumentError(Problem(", ".join(parts), mark.line + 1 if mark else None)) from None
    except yaml.reader.ReaderError:
        raise DocumentError(_odd_character(text)) from None
    except (ValueError, OverflowError, yaml.YAMLError, RecursionError) as error:
        raise DocumentError(Problem(f"a value cannot be read: {error}")) from None
    return Document(data, root)


def _decode(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise DocumentError(Problem(f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(Problem(f"byte 0x{content[error.start]:02x} is not UTF-8", line)) from None


def _odd_character(text: str) -> Problem:
    """Find what the reader has stumbled over; libyaml counts bytes, not characters."""
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if found is None:
        return Problem("a character is not allowed")
    line = text.count("\n", 0, found.start()) + 1
    return Problem(f"character #x{ord(found.group()):04x} is not allowed", line)


def _refuse_bombs(text: str) -> None:
    """Walk the events, which costs no memory, before anything is built of them."""
    # libyaml compares each %TAG directive with all before it.
    if sum(text.count(f"{end}%") for end in "\n\r\x85\u2028\u2029") > MAX_DIRECTIVES:
        raise DocumentError(Problem(f"more than {MAX_DIRECTIVES} lines begin with %"))
    if _is_flat(text):
        return
    total, length = 0, 0  # values and their characters so far, those of aliases counted anew
    open_collections: list[tuple[str | None, int, int]] = []  # anchor, and total and length before it
    depths = [0]  # of what is inside each open collection, the document itself first
    anchors: dict[str, tuple[int, int, int]] = {}
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else None
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _, _ in open_collections):
                raise DocumentError(Problem(f"alias *{event.anchor} contains itself", line))
            size, characters, depth = anchors.get(event.anchor or "", (0, 0, 0))
            total, length = total + size, length + characters
        elif isinstance(event, yaml.CollectionStartEvent):
            open_collections.append((event.anchor, total, length))
            depths.append(0)
            total += 1
            depth = 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before, shorter = open_collections.pop()
            depth = depths.pop() + 1
            if anchor:
                anchors[anchor] = (total - before, length - shorter, depth)
        elif isinstance(event, yaml.ScalarEvent):
            # PyYAML's patterns for numbers take forty times the memory of the text.
            start = event.value[:MAX_NUMBER] if event.implicit[0] and len(event.value) > MAX_NUMBER else "text"
            if not start.strip("0123456789_:.+-"):
                raise DocumentError(Problem(f"a number of more than {MAX_NUMBER} digits", line))
            total, length, depth = total + 1, length + len(event.value), 0
            if event.anchor:
                anchors[event.anchor] = (1, len(event.value), 0)
        else:
            continue
        depths[-1] = max(depths[-1], depth)
        if total > MAX_NODES:
            raise DocumentError(Problem(f"more than {MAX_NODES:,} values, aliases counted in full", line))
        if length > MAX_BYTES:
            raise DocumentError(Problem(f"more than {MAX_BYTES:,} characters, aliases counted in full", line))
        if len(open_collections) + depths[-1] > MAX_DEPTH:
            raise DocumentError(Problem(f"nested deeper than {MAX_DEPTH} levels, aliases included", line))


def _is_flat(text: str) -> bool:
    """Say whether a text is so short and so plain that no limit is in reach; almost all are."""
    if len(text) > FLAT_SIZE or "&" in text or _LONG_NUMBER.search(text):
        return False
    # A column can begin a mapping and, for its value, a sequence; other collections begin with a bracket.
    deepest = 2 * max(map(len, _LINE_START.findall(text)), default=0) + 2
    return deepest + text.count("[") + text.count("{") <= MAX_DEPTH


def _child(node: yaml.Node | None, part: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # merged keys stand before the mapping's own
            if isinstance(key, yaml.ScalarNode) and key.value == str(part):
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
        return child.start_mark.line + 1, child
    return None
