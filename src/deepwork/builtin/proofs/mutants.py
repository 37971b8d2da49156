"""Mutants: small faults put into work of any kind, so that a gate can be seen to refuse it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from deepwork.builtin.proofs import javascript

MAX_BYTES = 4 * 1024 * 1024
# Of one file; a seed chooses among them.
MAX_SITES = 2000

_FLIPPED = {
    "==": "!=",
    "!=": "==",
    "<=": ">",
    ">=": "<",
    "===": "!==",
    "!==": "===",
    "<": ">=",
    ">": "<=",
    "true": "false",
    "false": "true",
    "True": "False",
    "False": "True",
    "yes": "no",
    "no": "yes",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
}
_COMPARISON = re.compile(r"(?<=[\w)\]\s'\"])(===|!==|==|!=|<=|>=|(?<=\s)[<>](?=\s)|&&|\|\|)(?=[\w(\[\s'\"-])")
_BOOLEAN = re.compile(r"(?<![\w-])(true|false|True|False|yes|no)(?![\w-])")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])")
_PATH = re.compile(r"(?<![\w/])(?:\.{0,2}/)?(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}(?:#[\w-]+)?(?![\w/])")
_NAME = re.compile(r"(?<![\w-])[A-Za-z_][A-Za-z_0-9]{2,}(?![\w-])")
_COMPARED = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+"}


@dataclass(frozen=True)
class Mutant:
    """A file with one fault in it; `kind` says which, in words."""

    kind: str
    content: bytes


@dataclass(frozen=True)
class _Site:
    start: int
    end: int
    text: bytes
    kind: str


def mutants(path: str, content: bytes, random: Random, before: bytes | None = None) -> Iterator[Mutant]:
    """Yield different mutants of a file, kinds in turn, those first that say most; nothing for an empty file.

    The seed decides the order of the rest.

    Args:
        path: The file, whose name says which language it is.
        content: What is in it.
        random: Seeded by its caller: the same seed gives the same mutants.
        before: What was in it before the work on it, if that is known: of text a new line is removed.
    """
    if not content.strip() or len(content) > MAX_BYTES:
        return
    sites = [*_parsed(path, content)] or [*_text(content, before)]
    by_kind: dict[str, list[_Site]] = {}
    for site in sites:
        by_kind.setdefault(site.kind, []).append(site)
    for found in by_kind.values():
        random.shuffle(found)
    seen = {content}
    kinds = [*by_kind]
    random.shuffle(kinds)
    kinds.sort(key=_SURVIVORS.__contains__)
    while kinds:
        for kind in [*kinds]:
            if not by_kind[kind]:
                kinds.remove(kind)
                continue
            site = by_kind[kind].pop()
            mutant = content[: site.start] + site.text + content[site.end :]
            # An empty file is not a fault in the content: a gate refuses that without reading.
            if mutant.strip() and mutant not in seen:
                seen.add(mutant)
                line = content.count(b"\n", 0, site.start) + 1
                yield Mutant(f"{site.kind} in line {line}" if site.kind != _HALF else _HALF, mutant)


_HALF = "its first half alone"
# Honest gates let these pass more often than others: a text may be a mere title, a statement a whole test.
_SURVIVORS = frozenset({"another text", "a statement removed"})


def _parsed(path: str, content: bytes) -> Iterator[_Site]:
    """Yield faults that leave the syntax valid; nothing for other files."""
    if path.endswith((".py", ".pyi")):
        yield from _python(content)
    elif path.endswith(javascript.SUFFIXES):
        for fault in javascript.faults(path, content):
            yield _Site(*fault)


def _text(content: bytes, before: bytes | None) -> Iterator[_Site]:
    half = len(content) // 2
    yield _Site(half, len(content), b"", _HALF)
    yield from _lines(content, before)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        yield from _bytes(content)
        return
    changes: tuple[tuple[re.Pattern[str], str, Callable[[str], str]], ...] = (
        (_COMPARISON, "a comparison turned", lambda word: _FLIPPED[word]),
        (_BOOLEAN, "a boolean turned", lambda word: _FLIPPED[word]),
        (_NUMBER, "another number", _other_number),
        (_PATH, "another path", lambda word: f"gone-{len(word)}/{word.lstrip('./')}"),
        (_NAME, "another name", lambda word: f"{word[:-1]}{'x' if word[-1] != 'x' else 'y'}"),
    )
    for pattern, kind, changed in changes:
        for count, match in enumerate(pattern.finditer(text)):
            if count == MAX_SITES:
                break
            start = len(text[: match.start()].encode())
            word = match[0]
            yield _Site(start, start + len(word.encode()), changed(word).encode(), kind)


def _lines(content: bytes, before: bytes | None) -> Iterator[_Site]:
    """Yield each line of the change without it; without anything to compare with, all lines are of the change."""
    lines = content.splitlines(keepends=True)[:MAX_SITES]
    old = {line.strip() for line in (before or b"").splitlines()}
    is_change = any(line.strip() not in old for line in lines)
    kind = "a line of the change removed" if before is not None and is_change else "a line removed"
    offset = 0
    for line in lines:
        if line.strip() and not (is_change and line.strip() in old):
            yield _Site(offset, offset + len(line), b"", kind)
        offset += len(line)


def _bytes(content: bytes) -> Iterator[_Site]:
    step = max(1, len(content) // 64)
    for place in range(0, len(content), step):
        yield _Site(place, place + 1, bytes([content[place] ^ 0xFF]), "another byte")


def _other_number(word: str) -> str:
    return str(int(word) + 1) if word.isdecimal() else f"{float(word) + 1}"


def _python(content: bytes) -> Iterator[_Site]:
    """Yield faults that leave the syntax valid; nothing for what is no Python."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    documentation = {id(node) for node in _docstrings(tree)}
    for count, node in enumerate(ast.walk(tree)):
        if count > 50 * MAX_SITES:
            return
        if id(node) not in documentation:
            yield from _faults(node, content, starts)


def _faults(node: ast.AST, content: bytes, starts: list[int]) -> Iterator[_Site]:
    def span(one: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            starts[one.lineno - 1] + one.col_offset,
            starts[(one.end_lineno or one.lineno) - 1] + (one.end_col_offset or 0),
        )

    def between(left: ast.expr, right: ast.expr, word: str, kind: str) -> Iterator[_Site]:
        start, end = span(left)[1], span(right)[0]
        gap = content[start:end]
        brackets = gap.count(b")") + gap.count(b"(")
        if not brackets and b"#" not in gap and b"\n" not in gap:
            yield _Site(start, end, f" {word} ".encode(), kind)

    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARED:
            yield from between(left, right, _COMPARED[type(operator)], "a comparison turned")
        case ast.BoolOp(op=operator, values=[left, right]):
            word = "or" if isinstance(operator, ast.And) else "and"
            yield from between(left, right, word, "a condition turned")
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            yield from between(left, right, _OPERATORS[type(operator)], "another operator")
        case ast.Constant(value=bool() as value):
            yield _Site(*span(node), str(not value).encode(), "a boolean turned")
        case ast.Constant(value=int() | float() as number):
            yield _Site(*span(node), repr(number + 1).encode(), "another number")
        case ast.Constant(value=str() as text) if text and content[span(node)[0] : span(node)[1]][:1] in (b"'", b'"'):
            yield _Site(*span(node), repr(f"{text[:-1]}{'x' if text[-1] != 'x' else 'y'}").encode(), "another text")
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _Site(*span(value), b"None", "nothing returned")
        # Without an assignment a name may be missing, and whatever runs the work refuses that, read or not.
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield _Site(*span(node), b"pass", "a statement removed")


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text
        elif isinstance(node, ast.JoinedStr):
            # The parts of an f-string have no places of their own before Python 3.12.
            yield from ast.walk(node)
