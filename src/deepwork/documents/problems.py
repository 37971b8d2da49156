"""What is wrong in a document: sentences for its author, each with its line."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from deepwork.text import nearest, shorten, visible

if TYPE_CHECKING:  # documents without a model are read at once, without importing pydantic
    from pydantic import BaseModel

MAX_PROBLEMS = 20
MAX_MESSAGE = 1000
Location = Sequence[str | int]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a document; `line` counts from 1.

    `unknown_name` is a name with the valid ones. The nearest of them is looked for only when the problem is shown.
    `rule` is the name of the rule that is broken, for documents that are checked by named rules.
    """

    message: str
    line: int | None = None
    unknown_name: tuple[str, Sequence[str]] | None = None
    rule: str = ""

    @property
    def text(self) -> str:
        """The sentence, in one line and with the suggestion, as everybody reads it."""
        message = self.message + (nearest(*self.unknown_name) if self.unknown_name else "")
        return visible(shorten(message, MAX_MESSAGE))

    def at(self, file: object) -> str:
        """Return `file:line: message`, which editors can jump to: one line for any content of the document."""
        place = f"{visible(str(file))}:{self.line}" if self.line else visible(str(file))
        return f"{place}: {self.text}"


class DocumentError(Exception):
    """A document that cannot be used: the first things that are wrong in it, and how many more there are."""

    def __init__(self, *problems: Problem, more: int = 0) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = sorted(problems, key=lambda problem: problem.line or 0)
        self.more = more

    def of_rule(self, rule: str) -> DocumentError:
        """Return the same error, with this rule for problems that name none."""
        problems = [problem if problem.rule else replace(problem, rule=rule) for problem in self.problems]
        return DocumentError(*problems, more=self.more)

    def at(self, file: object) -> str:
        """Every problem on a line of its own."""
        lines = [problem.at(file) for problem in self.problems]
        if self.more:
            lines.append(f"{visible(str(file))}: and {self.more:,} more")
        return "\n".join(lines)


def refuse(problems: Iterator[Problem]) -> None:
    """Raise an error with the first problems. The rest is only counted: a document can have very many."""
    first = list(islice(problems, MAX_PROBLEMS))
    if first:
        raise DocumentError(*first, more=sum(1 for _ in problems))


def location_in(data: Any, loc: Location, *, missing: bool = False) -> list[str | int]:
    """Return where in the data an error of pydantic is, without the parts that pydantic adds for unions and keys.

    With `missing`, the last part is a key that the data does not have.
    """
    location: list[str | int] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(data, dict) and (part in data or (missing and last)):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            continue
        location.append(part)
    return location


def inside(location: Location) -> str:
    """`steps[0].outputs.report: `, or nothing at the top."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return f"{text.lstrip('.')}: " if text else ""


@cache
def _model_keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def keys_at(model: type[BaseModel], loc: Location) -> tuple[str, ...]:
    """List the keys that the model allows at a pydantic error location."""
    annotations: list[Any] = [model]
    for part in loc:
        annotations = [inner for annotation in annotations for inner in _descend(annotation, part)]
    return tuple(key for annotation in annotations if _is_model(annotation) for key in _model_keys(annotation))


def _descend(annotation: Any, part: str | int) -> Iterator[Any]:
    """Yield the annotations of one part of a location; the tag of a union's member leads to the member itself."""
    from pydantic import RootModel

    if _is_model(annotation):
        if issubclass(annotation, RootModel):
            for root in _unwrap(annotation.model_fields["root"].annotation):
                yield from _descend(root, part)
            return
        field = annotation.model_fields.get(part)
        if field is not None:
            yield from _unwrap(field.annotation)
        elif part == annotation.__name__ or part in getattr(annotation, "tags", ()):
            yield annotation
        return
    inner = typing.get_args(annotation)
    if typing.get_origin(annotation) is list and inner:
        yield from _unwrap(inner[0])
    elif typing.get_origin(annotation) is dict and inner:
        yield from _unwrap(inner[1])


def _unwrap(annotation: Any) -> Iterator[Any]:
    """Yield an annotation without `Annotated`, and each member of a union."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _unwrap(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _unwrap(member)
    else:
        yield annotation


def _is_model(annotation: Any) -> bool:
    from pydantic import BaseModel

    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
