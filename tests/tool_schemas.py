"""Makes the schemas of our tools once for all servers of a process: they are half of what a server in a test costs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from fastmcp.tools.function_parsing import ParsedFunction

from deepwork.server import create_server, tools


@contextmanager
def schemas_made_once() -> Iterator[None]:
    """Let FastMCP read the signature of a tool once, until the end of the block."""
    parse, serve = ParsedFunction.from_function, tools._served_tool
    served: ContextVar[Hashable] = ContextVar("served", default=None)
    known: dict[Hashable, tuple[ParsedFunction, str]] = {}

    def served_tool(name: str, spec: tools.ToolSpec, fn: Callable[..., Any]) -> Any:
        token = served.set(_key(spec))
        try:
            return serve(name, spec, fn)
        finally:
            served.reset(token)

    def from_function(fn: Callable[..., Any], **options: Any) -> ParsedFunction:
        key = served.get()
        if key not in known:
            parsed = parse(fn, **options)
            if key is None:
                return parsed
            # Without the function, so that its server can go.
            known[key] = replace(parsed, fn=_forgotten), json.dumps(parsed.input_schema)
        parsed, schema = known[key]
        return replace(parsed, fn=fn, input_schema=json.loads(schema))

    with patch.object(ParsedFunction, "from_function", from_function), patch.object(tools, "_served_tool", served_tool):
        yield


def make_schemas() -> None:
    """Make the schemas of all tools that are installed."""
    with TemporaryDirectory() as folder:
        create_server(folder)


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
