"""Settings from several hands: joined, and those of a project that could run programs held back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class NeedsTrust:
    """Marks a field of a settings model: `command: Annotated[str, NeedsTrust()] = "claude"`.

    For what names a program, its arguments or environment, or a place outside of the project. From a project's
    file such a setting takes effect only after the user has run `deepwork trust`.
    """


def join(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Put mappings into each other; everything else is replaced by the stronger."""
    joined = dict(weaker)
    for key, value in stronger.items():
        both = isinstance(value, Mapping) and isinstance(joined.get(key), Mapping)
        joined[key] = join(joined[key], value) if both else value
    return joined


def trusted_part(
    model: type[BaseModel], values: Mapping[str, Any], allows: Callable[[str, Any], bool], path: str = ""
) -> dict[str, Any]:
    """Leave out the marked settings that the user has not trusted, here and in models below."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        field = model.model_fields.get(name)
        inner = field.annotation if field else None
        if field and any(isinstance(mark, NeedsTrust) for mark in field.metadata):
            if allows(f"setting {path}{name}", value):
                kept[name] = value
        elif isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(value, Mapping):
            kept[name] = trusted_part(inner, value, allows, f"{path}{name}.")
        else:
            kept[name] = value
    return kept
