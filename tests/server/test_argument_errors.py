"""Wrong arguments are refused in words of JSON, for any tool, argument and value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, AnyUrl, Field

from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec

pytestmark = pytest.mark.anyio

Json = Any
PROSE_OF_PYTHON = re.compile(
    r"[Ii]nput should|instance of|dictionary|\bNone\b|\bdict\b|\bbool\b|\bint\b|\bstr\b|valid (string|integer|number)"
    r"|pydantic|Field required|NoneType|Value error|Assertion failed"
)
# One value of each JSON type, and values of the right type that are still wrong.
WRONG: list[Json] = [None, True, 0, -1, 10**17, 1.5, "", "boss", "5", "x" * 300, [], [1], [None], {}, {"zz": 1}]


def resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = definitions[schema["$ref"].split("/")[-1]]
    return schema


def members(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def right_value(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Json:
    """Return a value that the schema allows."""
    schema = resolved(schema, definitions)
    if members(schema):
        return right_value(members(schema)[0], definitions)
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    kind = schema.get("type", "object")
    if kind == "array":
        return [right_value(schema["items"], definitions)] if "items" in schema else []
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: right_value(fields[name], definitions) for name in schema.get("required", ())}
    return {"string": "x", "integer": 1, "number": 1.0, "boolean": True}[kind]


def places(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Callable[[Json], Json]]:
    """Yield, for each place in an argument, the function that puts a value there."""
    yield lambda value: value
    yield from inner_places(resolved(schema, definitions), definitions)


def inner_places(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Callable[[Json], Json]]:
    for member in members(schema):
        yield from inner_places(resolved(member, definitions), definitions)
    if schema.get("type") == "array" and "items" in schema:
        for put in places(schema["items"], definitions):
            yield lambda value, put=put: [put(value)]
    fields = schema.get("properties", {})
    for name, field in fields.items():
        for put in places(field, definitions):
            yield lambda value, put=put, name=name: {**right_value(schema, definitions), name: put(value)}


async def refusals(agent) -> list[tuple[str, Json, str]]:
    """Return the refusals of every wrong value of every argument; an argument of the same schema is tried once."""
    errors = []
    tried = set()
    for tool in await agent.client.list_tools():
        schema = tool.input_schema
        definitions = schema.get("$defs", {})
        fields = schema.get("properties", {})
        required = {name: right_value(fields[name], definitions) for name in schema.get("required", ())}
        for name, field in fields.items():
            key = json.dumps([name, field, tool.name.split("_")[0]])
            if key in tried:
                continue
            tried.add(key)
            for put in places(field, definitions):
                for value in WRONG:
                    sent = {**required, name: put(value)}
                    reply = await agent.client.call_tool(tool.name, sent, raise_on_error=False)
                    if reply.is_error:
                        errors.append((f"{tool.name}.{name}", put(value), reply.content[0].text))
    return errors


async def test_every_wrong_value_of_every_argument_of_every_tool_is_refused_in_words_of_json(project, monkeypatch):
    monkeypatch.delenv("DEEPWORK_NO_PLUGINS")
    project.write_job()
    async with project.agent() as agent:
        errors = await refusals(agent)
    assert len(errors) > 40
    for place, value, text in errors:
        assert not PROSE_OF_PYTHON.search(text), (place, value, text)
        for expected, sent in re.findall(r"give (.*), not (.*)$", text, re.MULTILINE):
            assert sent not in expected.split(" or "), (place, value, text)
            assert expected, (place, value, text)


def _refuse_monday(value: str) -> str:
    if value == "monday":
        raise ValueError("there is no Monday in this calendar")
    return value


def _every_kind(
    text: Annotated[str, Field(min_length=2, max_length=5)] = "ok",
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "a",
    number: Annotated[int, Field(ge=1, le=100)] = 1,
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5,
    step: Annotated[int, Field(multiple_of=5)] = 5,
    items: Annotated[list[int], Field(min_length=1, max_length=2)] = [1],  # noqa: B006 - never changed
    level: Literal[1, 2] | None = None,
    word: Literal["low", "high"] | int = "low",
    day: Annotated[str, AfterValidator(_refuse_monday)] = "tuesday",
    at: datetime | None = None,
    token: UUID | None = None,
    address: AnyUrl | None = None,
) -> str:
    return "taken"


class _EveryKind:
    @hookimpl
    def deepwork_tool_sets(self, context, engine):
        yield ToolSet(name="kinds", tools=[ToolSpec("every_kind", _every_kind, title="Take every kind", output="text")])


@pytest.mark.parametrize(
    ("argument", "value", "line"),
    [
        ("text", "", "text: give 2 or more characters, not 0"),
        ("text", "too long", "text: give 5 characters at most, not 8"),
        ("text", 5, "text: give a string, not a number"),
        ("code", "A1", "code: give a string that matches ^[a-z]+$, not 'A1'"),
        ("number", 0, "number: give 1 or more, not 0"),
        ("number", 101, "number: give 100 or less, not 101"),
        ("number", 1.5, "number: give a whole number, not 1.5"),
        ("number", "many", "number: give a whole number, not a string"),
        ("number", [], "number: give a whole number, not a list"),
        ("share", 1, "share: give a number below 1, not 1"),
        ("share", 0.0, "share: give a number above 0, not 0.0"),
        ("step", 7, "step: give a multiple of 5, not 7"),
        ("items", [], "items: give 1 or more items, not 0"),
        ("items", [1, 2, 3], "items: give 2 items at most, not 3"),
        ("items", {"a": 1}, "items: give a list, not an object"),
        ("items", ["x"], "items.0: give a whole number, not a string"),
        ("level", 3, "level: give 1 or 2, not 3"),
        ("level", "x", "level: give 1 or 2, not 'x'"),
        ("word", "middle", "word: give 'low' or 'high', not 'middle'"),
        ("word", "x" * 500, f"word: give 'low' or 'high', not '{'x' * 79}…'"),
        ("word", {}, "word: give 'low' or 'high' or a whole number, not an object"),
        ("day", "monday", "day: there is no Monday in this calendar"),
        ("at", "yesterday", "at: give a time as '2026-01-31T12:00:00Z', not 'yesterday'"),
        ("token", "abc", "token: give a UUID, not 'abc'"),
        ("address", "no address", "address: give a URL, not 'no address'"),
    ],
)
async def test_a_plugins_argument_of_any_kind_is_refused_with_what_would_be_right(project, argument, value, line):
    async with project.agent(extra_plugins={"kinds": _EveryKind()}) as agent:
        text = await agent.refused("every_kind", **{argument: value})
    assert text == f"every_kind: wrong arguments; nothing was changed\n{line}"
