"""Write the signatures, types and defaults of the API into the reference, from the code.

A page marks the place: a comment `signature: NAME` and the block after it. A heading of `docs/reference/hooks.md` that
is a hook or a class of `deepwork.api` gets its block by itself. A test compares the pages with the code.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, ForwardRef

from pydantic import BaseModel

import deepwork.hookspecs
from deepwork import api
from deepwork.models.history import HistoryEntry
from deepwork.models.jobs import Review
from deepwork.models.sessions import StepProgress

PAGES = Path(__file__).parent.parent / "docs" / "reference"
HOOKS = {name: hook for name, hook in vars(deepwork.hookspecs).items() if name.startswith("deepwork_")}
BLOCK = re.compile(r"<!-- signature: (.+?) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{2,4} (\w+)(?:\(.*\))?\n(?!\n<!-- signature)", re.MULTILINE)
WIDTH = 110
IMPLEMENTED = (api.JobSource, api.StateStore, api.ReviewRunner, api.InboxSource)


def public_names() -> dict[str, Any]:
    """Return every public name with what it names: those of `deepwork.api`, and those of the modules beside it."""
    beside = {name: getattr(import_module(module), name) for name, module in api.MOVED.items()}
    return dict(sorted(({name: getattr(api, name) for name in api.__all__} | beside).items()))


def described() -> dict[str, Callable[[], str]]:
    """Return what can be marked, and the function that makes its block."""
    named = public_names()
    classes = {name: item for name, item in named.items() if inspect.isclass(item)}
    return {
        **{name: partial(_function, hook) for name, hook in HOOKS.items()},
        **{name: partial(_class, item) for name, item in classes.items()},
        "functions": lambda: "".join(_function(item) for _, item in _functions(named)),
        "sessions": partial(_classes, api.Session, StepProgress, HistoryEntry, api.SessionSummary),
        "jobs": partial(_classes, api.Job, api.JobFile, api.Workflow, api.Step, api.StepOutput, Review),
    }


def updated(text: str, *, adding: bool) -> str:
    """Return a page with its blocks as the code says; `adding` puts them below headings that have none."""
    makers = described()

    def begun(match: re.Match[str]) -> str:
        return f"{match[0]}\n<!-- signature: {match[1]} -->\n```python\n```\n" if match[1] in makers else match[0]

    def filled(match: re.Match[str]) -> str:
        text = makers[match[1]]().replace("'", '"')  # `ruff format` formats blocks of pages too
        return f"<!-- signature: {match[1]} -->\n```python\n{text}```"

    return BLOCK.sub(filled, HEADING.sub(begun, text) if adding else text)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every page of the reference, and the text that it has to have."""
    for page in sorted(PAGES.glob("*.md")):
        yield page, updated(page.read_text(encoding="utf-8"), adding=page.name == "hooks.md")


def _functions(named: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, item) for name, item in named.items() if inspect.isfunction(item)]


def _classes(*kinds: type) -> str:
    return "\n".join(map(_class, kinds))


def _class(kind: type) -> str:
    if issubclass(kind, BaseException):
        return _wrapped(f"class {kind.__name__}", _parameters(kind.__init__)[1:], "")
    if issubclass(kind, enum.Enum):
        return f"class {kind.__name__}:\n" + "".join(f"    {item.name} = {item.value!r}\n" for item in kind)
    lines = [*_fields(kind), *_methods(kind)]
    comment = "  # fields by keyword only" if _is_keyword_only(kind) else ""
    if not lines:
        return f"class {kind.__name__}: ...\n"
    body = "".join(f"    {line}\n" if line else "\n" for line in lines).lstrip("\n")
    return f"class {kind.__name__}:{comment}\n{body}"


def _own_kinds(kind: type) -> Iterator[type]:
    return (base for base in reversed(kind.__mro__) if base.__module__.startswith("deepwork."))


def _fields(kind: type) -> Iterator[str]:
    defaults = {}
    if dataclasses.is_dataclass(kind):
        defaults = {item.name: _default_of_field(item) for item in dataclasses.fields(kind)}
    elif issubclass(kind, BaseModel):
        defaults = {name: _default_of_model(item) for name, item in kind.model_fields.items()}
    annotations: dict[str, str] = {}
    for base in _own_kinds(kind):
        annotations |= {name: _type(hint) for name, hint in inspect.get_annotations(base).items()}
    for name, hint in annotations.items():
        if not name.startswith("_") and not hint.startswith("ClassVar") and name != "model_config":
            fallback = f" = {_value(getattr(kind, name))}" if not defaults and hasattr(kind, name) else ""
            is_tuple = issubclass(kind, tuple)
            yield f"{name}: {hint}{defaults.get(name, '' if is_tuple else fallback)}"


def _methods(kind: type) -> Iterator[str]:
    methods: dict[str, Any] = {}
    for base in _own_kinds(kind):
        methods |= {name: item for name, item in vars(base).items() if not name.startswith("_")}
    for name, item in methods.items():
        if isinstance(item, property | cached_property):
            getter = item.fget if isinstance(item, property) else item.func
            yield from ("", "@property", f"def {name}(self) -> {_type(getter.__annotations__.get('return', ''))}")
        elif isinstance(item, classmethod | staticmethod):
            yield from ("", f"@{type(item).__name__}", *_function(item.__func__).splitlines())
        elif inspect.isfunction(item) and item.__name__ == name and not name.startswith("model_"):
            to_write = kind in IMPLEMENTED and getattr(item, "__isabstractmethod__", False)
            yield from ("", *(["# A plugin has to write this one."] if to_write else []), *_function(item).splitlines())


def _function(function: Any) -> str:
    is_manager = inspect.isgeneratorfunction(inspect.unwrap(function)) and hasattr(function, "__wrapped__")
    start = "async def" if inspect.iscoroutinefunction(function) else "def"
    start = f"@contextmanager\n{start}" if is_manager else start
    signature = inspect.signature(function)
    result = "" if signature.return_annotation is signature.empty else f" -> {_type(signature.return_annotation)}"
    return _wrapped(f"{start} {function.__name__}", _parameters(function), result)


def _wrapped(start: str, parameters: list[str], result: str) -> str:
    line = f"{start}({', '.join(parameters)}){result}\n"
    if len(line) <= WIDTH:
        return line
    return f"{start}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){result}\n"


def _parameters(function: Any) -> list[str]:
    texts: list[str] = []
    stars = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not stars:
            texts.append("*")
        stars = stars or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        hint = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        texts.append(f"{prefix}{parameter.name}{hint}{default}")
    return texts


def _type(hint: Any) -> str:
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    return hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))


def _default_of_field(item: dataclasses.Field[Any]) -> str:
    if item.default_factory is not dataclasses.MISSING:
        return f" = {_made(item.default_factory)}"
    return "" if item.default is dataclasses.MISSING else f" = {_value(item.default)}"


def _default_of_model(item: Any) -> str:
    if item.default_factory is not None:
        return f" = {_made(item.default_factory)}"
    return "" if item.is_required() else f" = {_value(item.default)}"


def _made(factory: Any) -> str:
    return {dict: "{}", list: "[]"}.get(factory) or f"{factory.__name__}()"


def _value(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, BaseModel):
        return f"{type(value).__name__}()"
    return "…" if callable(value) else repr(value)


def _is_keyword_only(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) and all(item.kw_only for item in dataclasses.fields(kind))


def main() -> None:
    """Rewrite the pages."""
    for page, text in pages():
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            sys.stdout.write(f"updated {page.name}\n")


if __name__ == "__main__":
    main()
