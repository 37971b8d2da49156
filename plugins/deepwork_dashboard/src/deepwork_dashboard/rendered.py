"""Markdown, CSV and JSON as a page shows them: a tree of plain values, without HTML and without a way out of it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from deepwork_dashboard.answers import Mapped

# Longer texts are shown as their lines alone.
MAX_RENDERED = 256 * 1024
MAX_ROWS = 2_000
MAX_CELLS = 50
MAX_CELL = 2_000

_TAGS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "quote",
    "strong": "b",
    "em": "i",
    "s": "s",
    "table": "table",
    "tr": "tr",
    "th": "td",
    "td": "td",
}


def rendered(kind: str, path: str, text: str) -> list[Mapped] | None:
    """Return the blocks of a text, each with its lines if that is known; None if it is shown as lines only."""
    if len(text) > MAX_RENDERED:
        return None
    try:
        match kind:
            case "markdown":
                return [*_markdown(text)]
            case "csv":
                return [*_table(text, "\t" if path.endswith(".tsv") else ",")]
            case "json":
                return [*_json(json.loads(text))]
    except (ValueError, csv.Error, RecursionError):
        return None
    return None


def _markdown(text: str) -> Iterator[Mapped]:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    for node in SyntaxTreeNode(parser.parse(text)).children:
        yield from _whole(node)


def _whole(node: SyntaxTreeNode) -> Iterator[Mapped]:
    """Return a block with its lines; the items of a list and the rows of a table are blocks of their own."""
    if node.type in ("bullet_list", "ordered_list"):
        first = int(node.attrs.get("start", 1))
        for number, item in enumerate(node.children, start=first):
            mark = f"{number}." if node.type == "ordered_list" else "•"
            yield {"tag": "item", "mark": mark, "parts": _parts(item), "lines": _lines(item)}
    elif node.type == "table":
        for part in node.children:
            for row in part.children:
                cells = [_parts(cell) for cell in row.children]
                yield {"tag": "row", "head": part.type == "thead", "cells": cells, "lines": _lines(row)}
    else:
        for part in _part(node):
            yield {**(part if isinstance(part, dict) else {"tag": "p", "parts": [part]}), "lines": _lines(node)}


def _lines(node: SyntaxTreeNode) -> list[int] | None:
    return [node.map[0] + 1, max(node.map[0] + 1, node.map[1])] if node.map else None


def _parts(node: SyntaxTreeNode) -> list[Any]:
    return [part for child in node.children for part in _part(child)]


def _part(node: SyntaxTreeNode) -> Iterator[Any]:
    match node.type:
        case "inline" | "thead" | "tbody":
            yield from _parts(node)
        case "text" | "html_inline" | "html_block":
            yield node.content
        case "softbreak":
            yield "\n"
        case "hardbreak":
            yield {"tag": "br"}
        case "code_inline":
            yield {"tag": "code", "parts": [node.content]}
        case "fence" | "code_block":
            yield {"tag": "pre", "parts": [node.content.removesuffix("\n")]}
        case "heading":
            yield {"tag": node.tag, "parts": _parts(node)}
        case "link" | "image":
            to = node.attrs.get("href" if node.type == "link" else "src")
            yield {"tag": node.type, "to": str(to), "parts": _parts(node) or [node.content]}
        case "hr":
            yield {"tag": "hr"}
        case name:
            yield {"tag": _TAGS.get(name, "p"), "parts": _parts(node)}


def _table(text: str, delimiter: str) -> Iterator[Mapped]:
    lines = text.split("\n")
    head = lines[0]
    if delimiter == "," and head.count(";") > head.count(","):
        delimiter = ";"
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)
    before = 0
    for number, cells in enumerate(islice(reader, MAX_ROWS)):
        if cells:
            yield _row(cells, head=number == 0, lines=[before + 1, reader.line_num])
        before = reader.line_num


def _json(value: Any) -> Iterator[Mapped]:
    match value:
        case [dict(), *_] if all(isinstance(item, dict) for item in value):
            names = [*dict.fromkeys(name for item in value[:MAX_ROWS] for name in item)]
            yield _row(names, head=True)
            for item in value[:MAX_ROWS]:
                yield _row(_shown(item[name]) if name in item else "" for name in names)
        case dict():
            for name, item in islice(value.items(), MAX_ROWS):
                yield _row((name, _shown(item)))
        case list():
            for item in value[:MAX_ROWS]:
                yield _row((_shown(item),))
        case _:
            yield _row((_shown(value),))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(cells: Iterable[str], *, head: bool = False, lines: list[int] | None = None) -> Mapped:
    return {
        "tag": "row",
        "head": head,
        "cells": [[cell[:MAX_CELL]] for cell in islice(cells, MAX_CELLS)],
        "lines": lines,
    }
