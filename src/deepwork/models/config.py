"""The sections of the configuration that more than the kernel reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A mapping of the configuration; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ToolsSection(Section):
    """Which tools are served, and under which names."""

    sets: list[str] | None = None
    prefix: dict[str, Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")]] = {}
    budget: Annotated[int, Field(gt=0)] | None = None


class NotificationsSection(Section):
    """Who is told of what waits for a person. Only the user's own file counts."""

    webhook: str | None = None
    secret_file: str | None = None
    command: Annotated[list[str], Field(min_length=1)] | None = None
    pass_env: list[str] = []
