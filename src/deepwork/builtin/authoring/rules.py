"""The rules of `deepwork jobs check`: their levels, and what cures a finding."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from deepwork.documents.load import read_document

FILE = Path(__file__).parent / "rules.yml"

FindingLevel = Literal["error", "warning", "info"]


class Rule(BaseModel):
    """One rule.

    Attributes:
        level: How much a finding of it matters, unless the finding itself says otherwise.
        says: What is wrong where it is broken.
        cure: What to do then.
        bad: An example that breaks it, without what does not matter; None where none can be shown.
        good: The same done right.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: FindingLevel
    says: str
    cure: str
    bad: str | None = None
    good: str | None = None


@cache
def rules() -> dict[str, Rule]:
    """Return all rules by their names, in the order of the page."""
    table = read_document(FILE.read_bytes()).data
    return {name: Rule.model_validate(fields) for name, fields in table.items()}
