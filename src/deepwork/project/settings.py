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

    Args:
        shown: Makes of the value what `deepwork trust` prints and remembers: a URL without its password, say.
    """

    shown: Callable[[Any], Any] | None = None


def join(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Put mappings into each other; everything else is replaced by the stronger."""
    joined = dict(weaker)
    for key, value in stronger.items():
        both_are_mappings = isinstance(value, Mapping) and isinstance(joined.get(key), Mapping)
        joined[key] = join(joined[key], value) if both_are_mappings else value
    return joined


def trusted_part(
    model: type[BaseModel], values: Mapping[str, Any], allows: Callable[[str, Any], bool], path: str = ""
) -> dict[str, Any]:
    """Leave out the marked settings that the user has not trusted, in this model and in models below it."""
    trusted: dict[str, Any] = {}
    for name, value in values.items():
        field = model.model_fields.get(name)
        inner = field.annotation if field else None
        marks = [mark for mark in field.metadata if isinstance(mark, NeedsTrust)] if field else []
        if marks:
            content = marks[0].shown(value) if marks[0].shown else value
            if allows(setting_label(f"{path}{name}"), content):
                trusted[name] = value
        elif isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(value, Mapping):
            trusted[name] = trusted_part(inner, value, allows, f"{path}{name}.")
        else:
            trusted[name] = value
    return trusted


def setting_label(path: str) -> str:
    """Name a setting as the user is asked about it."""
    return f"setting {path}"
