"""Files of MCP clients, generated, and what is wrong with what `deepwork connect` makes of them.

They are tidy and untidy, with comments, byte order marks, both line ends, names in quotes, traps inside of strings, and
with an entry of ours nowhere or anywhere. Into each the entry is put, put again, and taken out. Nothing here uses the
scanners that are tested: what is not ours is compared as bytes, as comments and as data.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deepwork.builtin.clients.files import get, with_entry, without_entry
from deepwork.builtin.clients.json_text import LENIENT, STRICT, WITH_COMMENTS, JsonSyntax
from deepwork.builtin.clients.toml_text import TomlSyntax
from deepwork.errors import ConfigError

ENTRY = {"type": "stdio", "command": "/home/ada/.venv/bin/deepwork", "args": ["serve", "--path", "."]}
TRAPS = [
    "a",
    "// no comment",
    "/* none */",
    "}, {",
    '\\"',
    "é😀",
    "[mcp_servers.deepwork]",
    "# none",
    "deepwork",
    "",
    "\\u0041",
]
OURS = "deepwork"


@dataclass(frozen=True)
class Sample:
    """A file, and where an entry of ours stands in it; `ours` is None without one."""

    text: str
    ours: tuple[int, int] | None


class Json:
    """Generates files of JSON, as far as a syntax allows."""

    keys = ("mcpServers", OURS)

    def __init__(self, syntax: JsonSyntax, chance: random.Random) -> None:
        self.syntax = syntax
        self._chance = chance
        self._parts: list[str] = []
        self._ours: tuple[int, int] | None = None

    def sample(self) -> Sample:
        """Generate a file."""
        chance = self._chance
        self._parts = ["\ufeff"] if chance.random() < 0.1 else []
        self._ours = None
        self._newline = chance.choice(["\n", "\n", "\r\n"])
        self._unit = chance.choice(["  ", "    ", "\t", None])
        self._untidy = chance.random() < 0.5
        if chance.random() < 0.03:
            self._parts.append(chance.choice(["", "\n", "  "]))
        else:
            self._gap(0)
            self._object(0, self._servers() if chance.random() < 0.8 else None)
            self._parts.append(self._newline if chance.random() < 0.7 else "")
        return Sample("".join(self._parts), self._ours)

    def comments(self, text: str) -> list[str]:
        """Return the comments of a text."""
        pattern = re.compile(r'"(?:\\.|[^"\\])*"|(//[^\r\n]*|/\*.*?\*/)', re.DOTALL)
        return [match[1].rstrip() for match in pattern.finditer(text) if match[1]] if self.syntax.comments else []

    def data(self, text: str) -> Any:
        """Read a text with comments and commas taken away, character by character."""
        return json.loads(_bare(text.removeprefix("\ufeff"))) if text.removeprefix("\ufeff").strip() else {}

    def _servers(self) -> Callable[[int], None]:
        names = [f"s{number}" for number in range(self._chance.randrange(4))]
        if self._chance.random() < 0.4:
            names.insert(self._chance.randint(0, len(names)), OURS)
        return lambda depth: self._members(depth, [(name, self._server) for name in names])

    def _server(self, depth: int) -> None:
        self._members(depth, [("command", self._scalar), ("args", self._value)])

    def _object(self, depth: int, servers: Callable[[int], None] | None) -> None:
        names = self._chance.sample(["a", "b b", "ü", "\\u0063", "$schema"], self._chance.randrange(4))
        members: list[tuple[str, Callable[[int], None]]] = [(name, self._value) for name in names]
        if servers:
            members.insert(self._chance.randint(0, len(members)), ("mcpServers", servers))
        self._members(depth, members)

    def _members(self, depth: int, members: list[tuple[str, Callable[[int], None]]]) -> None:
        self._parts.append("{")
        for index, (name, write) in enumerate(members):
            self._gap(depth + 1)
            self._parts.append(f'"{name}"')
            self._small_gap()
            self._parts.append(":")
            self._small_gap()
            start = len("".join(self._parts))
            write(depth + 1)
            if name == OURS and depth == 1:
                self._ours = start, len("".join(self._parts))
            self._comma(last=index == len(members) - 1)
        if members or self._chance.random() < 0.3:
            self._gap(depth)
        self._parts.append("}")

    def _value(self, depth: int) -> None:
        if depth > 3 or self._chance.random() < 0.6:
            self._scalar(depth)
        elif self._chance.random() < 0.5:
            self._object(depth, None)
        else:
            self._parts.append("[")
            count = self._chance.randrange(3)
            for index in range(count):
                self._gap(depth + 1)
                self._value(depth + 1)
                self._comma(last=index == count - 1)
            self._gap(depth)
            self._parts.append("]")

    def _scalar(self, _depth: int) -> None:
        text = f'"{self._chance.choice(TRAPS)}"'
        self._parts.append(self._chance.choice([text, "1", "-0.50", "1E5", "true", "null", "12345678901234567890"]))

    def _comma(self, *, last: bool) -> None:
        if not last or (self.syntax.trailing_commas and self._chance.random() < 0.3):
            self._small_gap()
            self._parts.append(",")

    def _gap(self, depth: int) -> None:
        if self._unit is not None:
            self._parts.append(self._newline + self._unit * depth)
        if self._untidy:
            self._small_gap()
        if self.syntax.comments and self._chance.random() < 0.1:
            self._parts.append(f"// {self._chance.choice(TRAPS)}{self._newline}")

    def _small_gap(self) -> None:
        if self._untidy:
            self._parts.append(self._chance.choice(["", " ", "\t", f" {self._newline} "]))
            if self.syntax.comments and self._chance.random() < 0.1:
                self._parts.append(f"/* {self._chance.choice(['x', '// y', ', }'])} */")


class Toml:
    """Generates files of TOML, with servers in every way in which they can be written."""

    keys = ("mcp_servers", OURS)
    syntax = TomlSyntax()

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def sample(self) -> Sample:
        """Generate a file."""
        chance = self._chance
        newline = chance.choice(["\n", "\n", "\r\n"])
        ours = chance.random() < 0.4
        root, tables = self._servers(ours=ours)
        lines = [*self._assignments("k"), *root, *self._assignments("m")]
        blocks = [*tables, *(self._table(f"t{number}") for number in range(chance.randrange(3)))]
        chance.shuffle(blocks)
        for block in blocks:
            lines += ["", *block] if chance.random() < 0.7 else block
        text = ("\ufeff" if chance.random() < 0.1 else "") + "\n".join(lines)
        text += "\n" * chance.randrange(3)
        return Sample(text.replace("\n", newline), (0, 0) if ours else None)

    def comments(self, text: str) -> list[str]:
        """Return the comments on lines of their own, which never belong to an entry."""
        outside = re.sub(r'"{3}.*?"{3}|\'{3}.*?\'{3}', "", text, flags=re.DOTALL)
        return re.findall(r"^[ \t]*(#[^\r\n]*)", outside, re.MULTILINE)

    def data(self, text: str) -> Any:
        """Read a text."""
        return tomllib.loads(text.removeprefix("\ufeff"))

    def _servers(self, *, ours: bool) -> tuple[list[str], list[list[str]]]:
        names = [f"s{number}" for number in range(self._chance.randrange(3))]
        if ours:
            names.insert(self._chance.randint(0, len(names)), self._chance.choice([OURS, f'"{OURS}"', f"'{OURS}'"]))
        form = self._chance.choice(["tables", "dotted", "inline", "short"])
        if form == "dotted":
            return [line for name in names for line in self._dotted(f"mcp_servers.{name}.")], []
        if form == "inline" and names:
            members = [
                self._chance.choice([f"{name} = {{ command = 'x' }}", f"{name}.command = 'y'"]) for name in names
            ]
            return [f"mcp_servers = {{ {' , '.join(members)} }} # all"], []
        if form == "short" and names:
            return [], [["[mcp_servers] # all", *(line for name in names for line in self._dotted(f"{name}."))]]
        blocks = []
        for name in names:
            blocks.append([f"[ mcp_servers . {name} ]", *self._dotted("")])
            if self._chance.random() < 0.4:
                blocks.append([f"[mcp_servers.{name}.env]", *self._assignments("E")])
        return [], blocks

    def _dotted(self, prefix: str) -> list[str]:
        lines = [f'{prefix}command = "x" # which', f"{prefix}args = {self._value()}"]
        if self._chance.random() < 0.4:
            lines += [f'{prefix}options.A = "1"', f'{prefix}options."b b" = 2']
        return lines

    def _table(self, name: str) -> list[str]:
        header = self._chance.choice([f"[{name}]", f"[[{name}]]", f'["{name}".x]'])
        return [header, *self._assignments("v")]

    def _assignments(self, prefix: str) -> list[str]:
        lines = []
        for number in range(self._chance.randrange(4)):
            lines.append(f"{prefix}{number} = {self._value()}{self._chance.choice(['', ' # note', '  '])}")
            if self._chance.random() < 0.3:
                lines.append(self._chance.choice(["# [mcp_servers.deepwork]", "", "  # 'x"]))
        return lines

    def _value(self) -> str:
        plain = self._chance.choice(["a", "# none", "[mcp_servers.deepwork]", "deepwork = 1", "é😀", ""])
        return self._chance.choice(
            [
                f'"{plain}"',
                f"'{plain}'",
                f'"""\n{plain}\n[mcp_servers.deepwork]\ncommand = 1\n"""',
                f"'''{plain}\n\"\"\"x'''",
                "1_000",
                "1979-05-27 07:32:00",
                "true",
                f'[ # list\n  "{plain}", # first\n  {{ x = "]" }},\n]',
                '{ a = { b = "}" }, c = [1, 2] }',
            ]
        )


def _bare(text: str) -> str:
    """Take away comments and trailing commas, by hand."""
    result, at = [], 0
    while at < len(text):
        if text[at] == '"':
            end = at + 1
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            result.append(text[at : end + 1])
            at = end + 1
        elif text.startswith("//", at):
            while at < len(text) and text[at] not in "\r\n":
                at += 1
        elif text.startswith("/*", at):
            at = text.index("*/", at) + 2
        else:
            if text[at] in "}]":
                while result and (result[-1].isspace() or result[-1] == ","):
                    result.pop()
            result.append(text[at])
            at += 1
    return "".join(result)


def _without_ours(data: Any, keys: tuple[str, str]) -> Any:
    servers = {name: server for name, server in data.get(keys[0], {}).items() if name != keys[1]}
    remaining = {key: value for key, value in data.items() if key != keys[0]}
    return {**remaining, keys[0]: servers} if servers else remaining


def complaints(generator: Json | Toml, sample: Sample) -> Iterator[str]:
    """Yield the defects of a changed file."""
    text, keys, syntax = sample.text, generator.keys, generator.syntax
    try:
        after = with_entry(text, syntax, keys, ENTRY)
        again = with_entry(after, syntax, keys, ENTRY)
        removed = without_entry(after, syntax, keys)
    except ConfigError as error:
        yield f"refused: {error.message}: {text!r}"
        return
    before_data = _without_ours(generator.data(text), keys)
    if again != after:
        yield f"changed at the second run: {text!r}"
    if get(generator.data(after), keys) != ENTRY:
        yield f"the entry is not there: {text!r}"
    if _without_ours(generator.data(after), keys) != before_data:
        yield f"other data changed: {text!r}"
    if _without_ours(generator.data(removed), keys) != before_data or get(generator.data(removed), keys) is not None:
        yield f"data changed by taking out: {text!r}"
    if sample.ours is None:
        letters = iter(after)
        if not all(letter in letters for letter in text):
            yield f"bytes were lost: {text!r}"
        if generator.comments(removed) != generator.comments(text):
            yield f"comments changed: {text!r}"
    elif isinstance(generator, Json):
        start, end = sample.ours
        if after[:start] != text[:start] or after[len(after) - len(text) + end :] != text[end:]:
            yield f"bytes outside of the entry changed: {text!r}"
    elif generator.comments(after) != generator.comments(text):
        yield f"comments changed: {text!r}"


def generators(seed: int) -> dict[str, Json | Toml]:
    """Return a generator for each format."""
    return {
        "JSON": Json(STRICT, random.Random(seed)),
        "JSON with comments": Json(WITH_COMMENTS, random.Random(seed)),
        "JSON, lenient": Json(LENIENT, random.Random(seed)),
        "TOML": Toml(random.Random(seed)),
    }
