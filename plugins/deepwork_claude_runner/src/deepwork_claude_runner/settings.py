"""What can be set under `plugins.settings.claude_runner`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from deepwork.api import NeedsTrust, at_most, same


class ClaudeSettings(BaseModel):
    """How Claude Code is called. A project may lower what its user allows, and needs trust for anything else.

    Attributes:
        command: The program, by name or path.
        extra_arguments: Put before the last ones.
        pass_env: Environment variables that it may see in addition; `*` at the end of a name stands for any rest.
        model: The model; by default Claude Code's own choice.
        max_turns: How often it may look into files before it has to answer.
        max_budget_usd: What one review may cost at most.
        concurrency: How many may run at once, within the limit of the gate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[str, NeedsTrust(), Field(min_length=1)] = "claude"
    extra_arguments: Annotated[list[str], NeedsTrust()] = []
    pass_env: Annotated[list[str], NeedsTrust()] = []
    model: Annotated[str | None, NeedsTrust(unless=same)] = None
    max_turns: Annotated[int, Field(gt=0), NeedsTrust(unless=at_most)] = 20
    max_budget_usd: Annotated[Annotated[float, Field(gt=0)] | None, NeedsTrust(unless=at_most)] = None
    concurrency: Annotated[Annotated[int, Field(gt=0)] | None, NeedsTrust(unless=at_most)] = None
