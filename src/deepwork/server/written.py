"""Replies as structure and as text, both written once."""

from __future__ import annotations

import operator
from typing import Any

import pydantic_core
from pydantic import BaseModel

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
        """Give a reply as a structure, which nobody may change, and as its JSON."""
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
