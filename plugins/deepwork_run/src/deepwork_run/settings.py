"""What can be set under `plugins.settings.run`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from deepwork.api import NeedsTrust

Permission = Literal["shell", "network", "all"]


def _within(name: str, value: Any, own: Mapping[str, Any]) -> bool:
    """True if the project's file allows nothing that the user's own does not allow too."""
    return isinstance(value, list) and ("all" in own[name] or all(item in own[name] for item in value))


class RunSettings(BaseModel):
    """How agents are started. A project may narrow what its user allows, and needs trust for anything else.

    Attributes:
        allow: What agents may do besides reading and editing files of the project.
        claude: The program of Claude Code, by name or path.
        codex: The same of Codex.
        pass_env: Environment variables that agents may see in addition; `*` at the end of a name stands for any rest.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: Annotated[list[Permission], NeedsTrust(unless=_within)] = []
    claude: Annotated[str, NeedsTrust(), Field(min_length=1)] = "claude"
    codex: Annotated[str, NeedsTrust(), Field(min_length=1)] = "codex"
    pass_env: Annotated[list[str], NeedsTrust()] = []
