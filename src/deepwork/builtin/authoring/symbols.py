"""The names in job files, tests and configurations: where each is made, and where it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from deepwork.documents.document import Document, Scalar

Location = tuple[str | int, ...]


class Symbol(NamedTuple):
    """What a name stands for: a step, or an output of a step."""

    kind: str
    name: str
    step: str = ""


@dataclass(frozen=True)
class Use:
    """A place in a file where a symbol is named; in one of them it is made."""

    symbol: Symbol
    scalar: Scalar
    is_definition: bool = False


def uses_in_job(document: Document) -> Iterator[Use]:
    """Yield the uses of steps and outputs in a job.yml."""
    steps = _list(_get(document.data, "steps"))
    for scalar in document.scalars():
        match scalar.location:
            case ("steps", int(), "id"):
                yield from _value(scalar, Symbol("step", scalar.text), is_definition=True)
            case ("steps", int(), "dependencies", int()) | ("workflows", int(), "steps", int()):
                yield from _value(scalar, Symbol("step", scalar.text))
            case ("workflows", int(), "steps", int(), int()) | ("steps", int(), "inputs", int(), "from_step"):
                yield from _value(scalar, Symbol("step", scalar.text))
            case ("steps", int() as index, "outputs", name) if scalar.is_key:
                yield Use(Symbol("output", str(name), _id(steps, index)), scalar, is_definition=True)
            case ("steps", int() as index, "inputs", int() as position, "file"):
                item = _at(_list(_get(_at(steps, index), "inputs")), position)
                yield from _value(scalar, Symbol("output", scalar.text, str(_get(item, "from_step"))))
            case ("steps", int() as index, "reviews", int(), "run_each") if scalar.text != "step":
                yield from _value(scalar, Symbol("output", scalar.text, _id(steps, index)))


def uses_in_test(document: Document) -> Iterator[Use]:
    """Yield the uses of steps and outputs in a test of a job."""
    steps = _list(_get(document.data, "steps"))
    for scalar in document.scalars():
        match scalar.location:
            case ("steps", int(), "step") | ("expect", "steps", int()):
                yield from _value(scalar, Symbol("step", scalar.text))
            case ("steps", int() as index, "outputs" | "verdicts", name) if scalar.is_key and name != "step":
                yield Use(Symbol("output", str(name), str(_get(_at(steps, index), "step"))), scalar)
            case ("expect", "outputs", name) if scalar.is_key:
                yield Use(Symbol("output", str(name)), scalar)


def uses_in_routes(document: Document, job_name: str) -> Iterator[Use]:
    """Yield the uses of steps and outputs of a job in the routes of a config.yml."""
    routes = _list(_get(_get(document.data, "quality_gate"), "runners"))
    for scalar in document.scalars():
        match scalar.location:
            case ("quality_gate", "runners", int() as index, "step" | "review" as key) if not scalar.is_key:
                route = _at(routes, index)
                if _get(route, "job") not in (job_name, None):
                    continue
                if key == "step":
                    yield Use(Symbol("step", scalar.text), scalar)
                elif scalar.text != "step":
                    yield Use(Symbol("output", scalar.text, str(_get(route, "step") or "")), scalar)


def same(use: Use, symbol: Symbol) -> bool:
    """True if a use is one of this symbol; a place that names no step may mean an output of any."""
    other = use.symbol
    if (other.kind, other.name) != (symbol.kind, symbol.name):
        return False
    return other.kind == "step" or not other.step or not symbol.step or other.step == symbol.step


def at(uses: Iterable[Use], line: int, column: int) -> Use | None:
    """Return the use at a place, with its end."""
    for use in uses:
        scalar = use.scalar
        if (scalar.line, scalar.column) <= (line, column) <= (scalar.end_line, scalar.end_column):
            return use
    return None


def _value(scalar: Scalar, symbol: Symbol, *, is_definition: bool = False) -> Iterator[Use]:
    if not scalar.is_key:
        yield Use(symbol, scalar, is_definition)


def _id(steps: list[Any], index: int) -> str:
    return str(_get(_at(steps, index), "id"))


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
