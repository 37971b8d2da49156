"""Settings from several hands: joined, and those of a project that could run programs held back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class NeedsTrust:
    """Marks a field of a settings model: `command: Annotated[str, NeedsTrust()] = "claude"`.

    For what names a program, its arguments or environment, or a place outside of the project. From a project's
    file such a setting takes effect only after the user has run `deepwork trust`.

    Args:
        shown: Makes of the value what `deepwork trust` prints and remembers: a URL without its password, say.
        unless: Says of the name of the setting, the project's value, and the user's own settings of the same section
            whether the project may have this value without trust: `at_most`, for what costs money.
    """

    shown: Callable[[Any], Any] | None = None
    unless: Callable[[str, Any, Mapping[str, Any]], bool] | None = None


def at_most(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    """True if a value is not above the user's own; None stands for unlimited."""
    return own[name] is None or (isinstance(value, int | float) and value <= own[name])


def same(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    """True if a value is the user's own."""
    return bool(value == own[name])


def join(weaker: Mapping[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Put mappings into each other; everything else is replaced by the stronger."""
    joined = dict(weaker)
    for key, value in stronger.items():
        both_are_mappings = isinstance(value, Mapping) and isinstance(joined.get(key), Mapping)
        joined[key] = join(joined[key], value) if both_are_mappings else value
    return joined


def trusted_part(
    model: type[BaseModel],
    values: Mapping[str, Any],
    allows: Callable[[str, Any], bool],
    path: str = "",
    *,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Leave out the marked settings that the user has not trusted, in this model and in models below it.

    `allows` is asked for each that needs trust, by its label, which begins with the path, and its content. `own` are
    the user's own settings of the same model.
    """
    trusted: dict[str, Any] = {}
    own_values = {**_defaults(model), **own}
    for name, value in values.items():
        field = model.model_fields.get(name)
        inner = field.annotation if field else None
        marks = [mark for mark in field.metadata if isinstance(mark, NeedsTrust)] if field else []
        if marks and not (marks[0].unless and marks[0].unless(name, value, own_values)):
            content = marks[0].shown(value) if marks[0].shown else value
            if allows(setting_label(f"{path}{name}"), content):
                trusted[name] = value
        elif isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(value, Mapping):
            inner_own = own.get(name)
            inner_values = inner_own if isinstance(inner_own, Mapping) else {}
            trusted[name] = trusted_part(inner, value, allows, f"{path}{name}.", own=inner_values)
        else:
            trusted[name] = value
    return trusted


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    return {name: field.get_default(call_default_factory=True) for name, field in model.model_fields.items()}


def setting_label(path: str) -> str:
    """Name a setting as the user is asked about it."""
    return f"setting {path}"
