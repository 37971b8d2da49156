"""Faults in JavaScript and TypeScript that leave the syntax valid: by tree-sitter, with the extra `javascript`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx")
_TYPED = (".ts", ".mts", ".cts")
SUFFIXES = (*_SCRIPTS, *_TYPED, ".tsx")
MAX_NODES = 100_000

_COMPARED = {"===": "!==", "!==": "===", "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_JOINED = {"&&": "||", "||": "&&"}
_OPERATORS = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "+", "**": "*"}

# Start, end, what stands there instead, and what that is in words.
Fault = tuple[int, int, bytes, str]


def faults(path: str, content: bytes) -> Iterator[Fault]:
    """Yield them; nothing for other files, for what cannot be parsed, and without the extra."""
    parser = _parser(path)
    root = parser.parse(content).root_node if parser else None
    if root is None or root.has_error:
        return
    nodes, count = [root], 0
    while nodes and count < MAX_NODES:
        node = nodes.pop()
        count += 1
        if not _is_name_of_module(node):
            yield from _faults(node)
            nodes += reversed(node.children)


def _parser(path: str) -> Parser | None:
    try:
        from tree_sitter import Language, Parser
        from tree_sitter_javascript import language
        from tree_sitter_typescript import language_tsx, language_typescript
    except ImportError:
        return None
    if path.endswith(_SCRIPTS):
        return Parser(Language(language()))
    if path.endswith(_TYPED):
        return Parser(Language(language_typescript()))
    return Parser(Language(language_tsx())) if path.endswith(".tsx") else None


def _is_name_of_module(node: Node) -> bool:
    """True for what names another module: without that the work does not start, which every gate sees."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    return node.type == "import_statement" or (called is not None and called.text in (b"require", b"import"))


def _faults(node: Node) -> Iterator[Fault]:
    start, end, text = node.start_byte, node.end_byte, node.text or b""
    match node.type:
        case "binary_expression" if operator := node.child_by_field_name("operator"):
            for words, kind in (
                (_COMPARED, "a comparison turned"),
                (_JOINED, "a condition turned"),
                (_OPERATORS, "another operator"),
            ):
                if word := words.get(operator.type):
                    yield operator.start_byte, operator.end_byte, word.encode(), kind
        case "true" | "false":
            yield start, end, b"false" if node.type == "true" else b"true", "a boolean turned"
        case "number" if text.isdigit():
            yield start, end, str(int(text) + 1).encode(), "another number"
        case "string_fragment":
            last = node.end_byte - len((node.text or b"").decode()[-1:].encode())
            yield last, end, b"y" if text.endswith(b"x") else b"x", "another text"
        case "return_statement" if node.named_child_count:
            value = node.named_children[0]
            yield value.start_byte, value.end_byte, b"undefined", "nothing returned"
        case "expression_statement" if node.named_children[0].type in ("call_expression", "assignment_expression"):
            yield start, end, b";", "a statement removed"
