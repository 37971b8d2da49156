"""Looks up once, for thousands of servers and clients, what each would look up anew: more than half of what they cost.

That is the schemas of our tools, the entry points of installed plugins, and whether a schema is one.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import importlib_metadata
import jsonschema
from fastmcp.tools.function_parsing import ParsedFunction

from deepwork.server import create_server, tools


@contextmanager
def looked_up_once() -> Iterator[None]:
    """Look up once what servers and clients look up, until the end of the block."""
    check, entry_points = jsonschema.Draft202012Validator.check_schema, importlib_metadata.entry_points

    @functools.cache
    def checked(schema: str) -> None:
        check(json.loads(schema))

    @functools.cache
    def found(_folders: Hashable, group: str) -> Any:
        return entry_points(group=group)

    def check_schema(schema: Any, *_args: Any, **_options: Any) -> None:
        checked(json.dumps(schema, sort_keys=True))

    def find(*, group: str) -> Any:
        return found(_folders(), group)

    with (
        patch.object(jsonschema.Draft202012Validator, "check_schema", check_schema),
        patch.object(importlib_metadata, "entry_points", find),
        _schemas_made_once(),
    ):
        yield


def look_up() -> None:
    """Look up what a server in an empty project does, with all plugins."""
    with TemporaryDirectory() as folder, suppress(Exception):
        create_server(folder)


def _folders() -> Hashable:
    """Return the folders that modules are imported from, with the time of the last change in each."""
    folders = [os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder or os.curdir)]
    changed = [(folder, os.stat(folder).st_mtime_ns) for folder in folders]
    return tuple(place for place in changed if _has_metadata(*place))


@functools.cache
def _has_metadata(folder: str, _changed: int) -> bool:
    """Return whether something is installed in a folder: in that of a project is nothing."""
    return any(name.endswith((".dist-info", ".egg-info", ".egg")) for name in os.listdir(folder))


@contextmanager
def _schemas_made_once() -> Iterator[None]:
    """Let FastMCP read the signature of a tool once."""
    parse, serve = ParsedFunction.from_function, tools._served_tool
    served: ContextVar[Hashable] = ContextVar("served", default=None)
    parsed_functions: dict[Hashable, tuple[ParsedFunction, str]] = {}

    def served_tool(name: str, spec: tools.ToolSpec, fn: Callable[..., Any]) -> Any:
        token = served.set(_key(spec))
        try:
            return serve(name, spec, fn)
        finally:
            served.reset(token)

    def from_function(fn: Callable[..., Any], **options: Any) -> ParsedFunction:
        key = served.get()
        if key not in parsed_functions:
            parsed = parse(fn, **options)
            if key is None:
                return parsed
            # Without the function, so that its server can go.
            parsed_functions[key] = replace(parsed, fn=_forgotten), json.dumps(parsed.input_schema)
        parsed, schema = parsed_functions[key]
        return replace(parsed, fn=fn, input_schema=json.loads(schema))

    with patch.object(ParsedFunction, "from_function", from_function), patch.object(tools, "_served_tool", served_tool):
        yield


def _key(spec: tools.ToolSpec) -> Hashable:
    """Return what names the text that a schema is made of; None if it depends on more than a text."""
    fn = getattr(spec.fn, "__func__", spec.fn)
    if not inspect.isfunction(fn) or hasattr(fn, "__wrapped__") or hasattr(fn, "__signature__"):
        return None
    if not all(isinstance(hint, str) for hint in fn.__annotations__.values()):
        return None
    place = (fn.__code__, fn.__code__.co_filename, fn.__qualname__, repr((fn.__defaults__, fn.__kwdefaults__)))
    return *place, spec.run is None, spec.nullable, spec.repeatable


def _forgotten() -> None:
    """Stand for the function of a server."""
