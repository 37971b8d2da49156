"""Registers the tools, resources and prompts of plugins with FastMCP, with our schemas and error texts."""

from __future__ import annotations

import functools
import inspect
import logging
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import NoneType
from typing import Annotated, Any, cast, get_args, get_type_hints

import pydantic_core
from fastmcp import FastMCP
from fastmcp.exceptions import PromptError, ResourceError, ValidationError
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.tools import FunctionTool, ToolResult
from fastmcp.tools.base import InputRequiredToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import BaseModel, Field, PrivateAttr, PydanticUserError, TypeAdapter
from pydantic.json_schema import SkipJsonSchema

from deepwork.errors import PluginError
from deepwork.ports.call import ToolCall
from deepwork.ports.records import PromptSpec, ResourceSpec, ToolSpec
from deepwork.server.argument_errors import argument_error
from deepwork.server.elicitation import AnswerNeeded
from deepwork.server.middleware import CallMiddleware, translated

Structure = dict[str, Any]


class ReplyWriter:
    """Writes the replies of one tool.

    A model may name fields as `UNCHANGING`: its first ones, whose values are the same objects for as long as they say
    the same. They are written again only when they are other objects.
    """

    def __init__(self) -> None:
        self._values: tuple[object, ...] = ()
        self._structure: Structure = {}
        self._text = b"{}"

    def written(self, reply: BaseModel) -> tuple[Structure, bytes]:
        """Return a reply as a structure, which must not be changed, and as its JSON."""
        names: tuple[str, ...] = getattr(reply, "UNCHANGING", ())
        if not names:
            structure = reply.model_dump(mode="json")
            return structure, pydantic_core.to_json(structure)
        values = tuple(getattr(reply, name) for name in names)
        if len(values) != len(self._values) or not all(map(operator.is_, values, self._values)):
            self._structure = reply.model_dump(mode="json", include=set(names))
            self._text = pydantic_core.to_json(self._structure)
            self._values = values
        rest = reply.model_dump(mode="json", exclude=set(names))
        text = self._text[:-1] + b"," + pydantic_core.to_json(rest)[1:] if rest else self._text
        return {**self._structure, **rest}, text


# The argument that makes a call repeatable.
REQUEST_ID = "request_id"
_RequestId = Annotated[str, Field(description="Any id; makes a retry safe")]
# Null is allowed, and the schema does not say so.
_NULL: Any = SkipJsonSchema[None]  # type: ignore[misc]  # pydantic's subscript, not generic for mypy


class ServedTool(FunctionTool):
    """A function tool that serializes results, and words errors, as the specification says."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the function; every error becomes a FastMCP `ToolError`."""
        try:
            return await super().run(arguments)
        except AnswerNeeded as needed:
            return InputRequiredToolResult(needed.question)
        except ValidationError as error:
            raise argument_error(self.name, self.parameters, arguments, error) from None
        except Exception as error:
            raise translated(self.name, error) from error

    _writer: ReplyWriter = PrivateAttr(default_factory=ReplyWriter)

    def convert_result(self, raw_value: Any) -> ToolResult:
        """Serialize by `model_dump` (JOBS-REQ-001.7.1), once: the text is written from the structure."""
        if isinstance(raw_value, ToolResult):
            return raw_value
        if isinstance(raw_value, str):
            return ToolResult(content=[TextContent(type="text", text=raw_value)])
        if not isinstance(raw_value, BaseModel):
            text = TextContent(type="text", text=pydantic_core.to_json(raw_value).decode())
            return ToolResult(content=[text], structured_content=None if self.output_schema is None else raw_value)
        structure, written = self._writer.written(raw_value)
        text = TextContent(type="text", text=written.decode())
        # The constructor would copy the structure once more.
        return ToolResult.model_construct(
            content=[text], structured_content=None if self.output_schema is None else structure
        )


def add_tool(server: FastMCP[Any], name: str, spec: ToolSpec, middleware: CallMiddleware) -> None:
    """Register a tool.

    Raises:
        TypeError: A parameter has a type without a JSON schema.
    """
    fn = _without_call(spec.fn, middleware) if spec.run is None else _run_by(spec, middleware)
    if spec.nullable:
        fn = _nullable(fn)
    try:
        server.add_tool(_served_tool(name, spec, fn))
    except PydanticUserError as error:
        raise _without_schema(fn) or error from error


def _served_tool(name: str, spec: ToolSpec, fn: Callable[..., Any]) -> FunctionTool:
    has_schema = spec.output == "object" or not isinstance(spec.output, str)
    return ServedTool.from_function(
        fn,
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


def _without_schema(fn: Callable[..., Any]) -> TypeError | None:
    """Return the error that names the first parameter whose type has no JSON schema."""
    for name, hint in fn.__annotations__.items():
        try:
            TypeAdapter(hint).json_schema()
        except PydanticUserError:
            shown = getattr(hint, "__name__", hint)
            return TypeError(
                f"the parameter {name!r} has the type {shown}, of which there is no JSON schema; take str, int, float, "
                "bool, a list or dict of them, or a pydantic model"
            )
    return None


def add_resource(server: FastMCP[Any], spec: ResourceSpec, middleware: CallMiddleware) -> None:
    """Register a resource, or a template if the URI has names in braces.

    Raises:
        PluginError: The function has a parameter that the URI does not name.
    """
    fn = _without_call(spec.fn, middleware, functools.partial(_resource_errors, spec.uri))
    _check_parameters(spec, fn)
    about = {"name": spec.name, "description": spec.description, "mime_type": spec.mime_type}
    if "{" in spec.uri:
        server.add_template(ResourceTemplate.from_function(fn, uri_template=spec.uri, **about))  # type: ignore[arg-type]
    else:
        server.add_resource(Resource.from_function(fn, uri=spec.uri, **about))  # type: ignore[arg-type]


def add_prompt(server: FastMCP[Any], spec: PromptSpec, middleware: CallMiddleware) -> None:
    """Register a prompt."""
    fn = _without_call(spec.fn, middleware, functools.partial(_prompt_errors, spec.name))
    server.add_prompt(Prompt.from_function(fn, name=spec.name, description=spec.description))


def _check_parameters(spec: ResourceSpec, fn: Callable[..., Any]) -> None:
    uri_names = set(re.findall(r"\w+", " ".join(re.findall(r"{(.*?)}", spec.uri))))
    for name, parameter in inspect.signature(fn).parameters.items():
        if parameter.default is parameter.empty and name not in uri_names:
            raise PluginError(
                f"resource {spec.uri!r}: its function wants {name!r}, which is not in the URI",
                hint=f"Put {{{name}}} into the URI, or give the parameter a default.",
            )


@contextmanager
def _resource_errors(uri: str) -> Iterator[None]:
    """Word errors as those of tools; FastMCP would hide the text of every error that is not its own."""
    try:
        yield
    except Exception as error:
        raise ResourceError(str(translated(uri, error)), log_level=logging.DEBUG) from error


@contextmanager
def _prompt_errors(name: str) -> Iterator[None]:
    """Word errors as those of tools."""
    try:
        yield
    except Exception as error:
        raise PromptError(str(translated(name, error)), log_level=logging.DEBUG) from error


def _without_call(
    fn: Callable[..., Any],
    middleware: CallMiddleware,
    context: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Callable[..., Any]:
    """Wrap a function so that FastMCP does not see its `ToolCall` parameter, and run it in a context.

    The wrapper is async if the function is. It has neither docstring nor return type: `ToolSpec` and `ResourceSpec` say
    all about both, and FastMCP would import a docstring parser and derive an output schema of its own.
    """
    hints = get_type_hints(fn, include_extras=True)
    parameters = inspect.signature(fn).parameters
    call_names = [name for name in parameters if hints.get(name) is ToolCall]

    def with_call(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, **dict.fromkeys(call_names, middleware.current())} if call_names else values

    async def call_async(*args: Any, **values: Any) -> Any:
        with context():
            return await fn(*args, **with_call(values))

    def call_sync(*args: Any, **values: Any) -> Any:
        with context():
            return fn(*args, **with_call(values))

    wrapper: Any = functools.wraps(fn)(call_async if inspect.iscoroutinefunction(fn) else call_sync)
    del wrapper.__wrapped__  # FastMCP would follow it to the signature of the function itself
    wrapper.__doc__ = None
    visible = [parameter for name, parameter in parameters.items() if name not in call_names]
    return _signed(wrapper, visible, {name: hints[name] for name in hints if name not in (*call_names, "return")})


def _run_by(spec: ToolSpec, middleware: CallMiddleware) -> Callable[..., Any]:
    """Make the function that FastMCP calls for a tool that is run by something else than its function."""
    run = spec.run
    assert run is not None

    async def wrapper(**values: Any) -> Any:
        return await run(middleware.current(), values)

    hints = get_type_hints(spec.fn, include_extras=True)
    parameters = [
        parameter.replace(kind=parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(spec.fn).parameters.values()
        if parameter.kind is not parameter.POSITIONAL_ONLY
    ]
    if spec.repeatable:
        hints[REQUEST_ID] = _RequestId | None
        parameters.append(inspect.Parameter(REQUEST_ID, inspect.Parameter.KEYWORD_ONLY, default=None))
    return _signed(wrapper, parameters, {parameter.name: hints[parameter.name] for parameter in parameters})


def _nullable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let null stand for each argument that may be left out; the schema does not mention it."""
    parameters = inspect.signature(fn).parameters
    optional = {name: item.default for name, item in parameters.items() if item.default is not item.empty}

    def without_null(values: dict[str, Any]) -> dict[str, Any]:
        return {name: optional.get(name) if value is None else value for name, value in values.items()}

    async def call_async(**values: Any) -> Any:
        return await fn(**without_null(values))

    def call_sync(**values: Any) -> Any:
        return fn(**without_null(values))

    hints = {name: _or_null(hint, optional[name]) if name in optional else hint for name, hint in _hints(fn).items()}
    visible = [item.replace(kind=item.KEYWORD_ONLY, default=item.empty) for item in parameters.values()]
    return _signed(call_async if inspect.iscoroutinefunction(fn) else call_sync, visible, hints)


def _or_null(hint: Any, default: Any) -> Any:
    """Return the type of an argument that may be null; null is not named where it is the default, too."""
    members = [member for member in get_args(hint) if member is not NoneType] if default is None else [hint]
    field = Field(default_factory=lambda: None) if default is None else Field(default=default)
    optional: Any = functools.reduce(operator.or_, [*members, _NULL])
    return Annotated[optional, field]


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    return {name: hint for name, hint in fn.__annotations__.items() if name != "return"}


def _signed(wrapper: Any, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> Callable[..., Any]:
    """Set the signature that FastMCP makes a schema of."""
    wrapper.__signature__ = inspect.Signature(
        [parameter.replace(annotation=hints.get(parameter.name, parameter.annotation)) for parameter in parameters]
    )
    wrapper.__annotations__ = hints
    return cast("Callable[..., Any]", wrapper)


def _output_schema(spec: ToolSpec) -> dict[str, Any]:
    if isinstance(spec.output, str):
        return {"type": "object", "additionalProperties": True}
    return _schema_of(spec.output)


@functools.cache
def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(mode="serialization")
    required = schema.get("required", [])
    return {**_lean(schema), "required": required}


def _lean(schema: Any, *, names: bool = False) -> Any:
    """Shorten a schema: no titles, no docstrings, nullable types as one list. Each agent pays for it in tokens."""
    if isinstance(schema, list):
        return [_lean(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    short = {
        key: _lean(value, names=key in ("properties", "$defs"))
        for key, value in schema.items()
        if names
        or not (
            key in ("title", "description", "default", "required") or (key, value) == ("additionalProperties", False)
        )
    }
    choices = short.get("anyOf")
    if not names and isinstance(choices, list) and all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return short
