"""From a `ToolSpec` to a FastMCP tool: the same function, its schema, its errors in our words."""

from __future__ import annotations

import functools
import inspect
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_type_hints

import pydantic_core
from fastmcp import FastMCP
from fastmcp.exceptions import ResourceError, ValidationError
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.tools import FunctionTool, ToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import BaseModel

from deepwork.errors import PluginError
from deepwork.ports.call import ToolCall
from deepwork.ports.records import PromptSpec, ResourceSpec, ToolSpec
from deepwork.server.middleware import Calls, argument_error, translated


class ServedTool(FunctionTool):
    """A function tool whose results and errors leave in the forms that agents know."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the function; every error becomes a FastMCP `ToolError`."""
        try:
            return await super().run(arguments)
        except ValidationError as error:
            raise argument_error(self.name, self.parameters, arguments, error) from None
        except Exception as error:
            raise translated(self.name, error) from error

    def convert_result(self, raw_value: Any) -> ToolResult:
        """Serialize by `model_dump` (JOBS-REQ-001.7.1): once for the text, once for the structure."""
        if isinstance(raw_value, ToolResult):
            return raw_value
        if isinstance(raw_value, BaseModel):
            raw_value = raw_value.model_dump(mode="json")
        if isinstance(raw_value, str):
            return ToolResult(content=[TextContent(type="text", text=raw_value)])
        text = TextContent(type="text", text=pydantic_core.to_json(raw_value).decode())
        if self.output_schema is None:
            return ToolResult(content=[text])
        return ToolResult(content=[text], structured_content=raw_value)


def add_tool(server: FastMCP[Any], name: str, spec: ToolSpec, calls: Calls) -> None:
    """Register a tool."""
    has_schema = spec.output == "object" or not isinstance(spec.output, str)
    server.add_tool(
        ServedTool.from_function(
            _without_call(spec.fn, calls),
            name=name,
            title=spec.title,
            description=inspect.getdoc(spec.fn) or "",
            annotations=ToolAnnotations(
                read_only_hint=spec.read_only,
                destructive_hint=spec.destructive,
                idempotent_hint=spec.idempotent,
                open_world_hint=False,
            ),
            output_schema=_output_schema(spec) if has_schema else None,
            meta={"anthropic/alwaysLoad": True} if spec.always_load else None,
        )
    )


def add_resource(server: FastMCP[Any], spec: ResourceSpec, calls: Calls) -> None:
    """Register a resource, or a template where the URI has names in braces.

    Raises:
        PluginError: The function wants something else than what the URI names.
    """
    visible = _without_call(spec.fn, calls)
    _check_parameters(spec, visible)
    fn = _readable(spec.uri, visible)
    about = {"name": spec.name, "description": spec.description, "mime_type": spec.mime_type}
    if "{" in spec.uri:
        server.add_template(ResourceTemplate.from_function(fn, uri_template=spec.uri, **about))  # type: ignore[arg-type]
    else:
        server.add_resource(Resource.from_function(fn, uri=spec.uri, **about))  # type: ignore[arg-type]


def add_prompt(server: FastMCP[Any], spec: PromptSpec) -> None:
    """Register a prompt."""
    server.add_prompt(Prompt.from_function(spec.fn, name=spec.name, description=spec.description))


def _check_parameters(spec: ResourceSpec, fn: Callable[..., Any]) -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"{(.*?)}", spec.uri))))
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.default is parameter.empty and name not in named:
            raise PluginError(
                f"resource {spec.uri!r}: its function wants {name!r}, which is not in the URI",
                hint=f"Put {{{name}}} into the URI, or give the parameter a default.",
            )


def _readable(uri: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let errors leave in our words; FastMCP would hide even those that are meant to be read."""
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def shim(*args: Any, **kwargs: Any) -> Any:
            with _resource_errors(uri):
                return await fn(*args, **kwargs)

    else:

        @functools.wraps(fn)
        def shim(*args: Any, **kwargs: Any) -> Any:
            with _resource_errors(uri):
                return fn(*args, **kwargs)

    return shim


@contextmanager
def _resource_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise ResourceError(str(translated(uri, error)), log_level=logging.DEBUG) from error


def _without_call(fn: Callable[..., Any], calls: Calls) -> Callable[..., Any]:
    """Hide the `ToolCall` parameter from the schema; sync stays sync, async stays async.

    Docstring and return type are hidden too, for `ToolSpec` says all about both: FastMCP would import a parser for the
    one, and make a schema of the other.
    """
    hints = get_type_hints(fn, include_extras=True)
    signature = inspect.signature(fn)
    hidden = [name for name in signature.parameters if hints.get(name) is ToolCall]

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def shim(*args: Any, **kwargs: Any) -> Any:
            return await fn(*args, **{name: calls.current() for name in hidden}, **kwargs)

    else:

        @functools.wraps(fn)
        def shim(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **{name: calls.current() for name in hidden}, **kwargs)

    del shim.__wrapped__  # or FastMCP would look through to the function
    shim.__doc__ = None
    visible = [parameter for name, parameter in signature.parameters.items() if name not in hidden]
    shim.__signature__ = inspect.Signature(visible)  # type: ignore[attr-defined]
    shim.__annotations__ = {name: hint for name, hint in hints.items() if name not in (*hidden, "return")}
    return shim


def _output_schema(spec: ToolSpec) -> dict[str, Any]:
    if isinstance(spec.output, str):
        return {"type": "object", "additionalProperties": True}
    schema = spec.output.model_json_schema(mode="serialization")
    required = schema.get("required", [])
    return {**_lean(schema), "required": required}


def _lean(schema: Any, *, names: bool = False) -> Any:
    """Say the same in fewer tokens: no titles, no docstrings, nullable types as one list."""
    if isinstance(schema, list):
        return [_lean(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _lean(value, names=key in ("properties", "$defs"))
        for key, value in schema.items()
        if names
        or not (
            key in ("title", "description", "default", "required") or (key, value) == ("additionalProperties", False)
        )
    }
    choices = kept.get("anyOf")
    if not names and isinstance(choices, list) and all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return kept
