"""The sections of the configuration that more than the kernel reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# The description of keys that only older files have.
IGNORED = "Accepted for older files; without effect."


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration such as `30s`, `15m`, `2h` or `3d`."""
    return int(duration[:-1]) * _UNITS[duration[-1]]


class Section(BaseModel):
    """A mapping of the configuration; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ToolsSection(Section):
    """Which tools are served, and under which names."""

    sets: list[str] | None = Field(
        None, description="The tool sets that are served; without it all that are installed."
    )
    prefix: dict[str, Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")]] = Field(
        {}, description="What is put before the names of a set's tools, by set."
    )
    budget: Annotated[int, Field(gt=0)] | None = Field(
        None, description="The tokens of the tool list above which `deepwork doctor` warns."
    )


class NotificationsSection(Section):
    """Who is told of what waits for a person. Only the user's own file counts."""

    webhook: str | None = Field(
        None, description="The address that is told of what waits for a person. Only in your own file."
    )
    secret_file: str | None = Field(None, description="The file with the key that signs what is sent to the webhook.")
    command: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="The program that is told of what waits for a person. Only in your own file."
    )
    pass_env: list[str] = Field([], description="Variables that this program sees besides the usual ones.")
