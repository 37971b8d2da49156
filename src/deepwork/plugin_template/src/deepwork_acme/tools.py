"""The tools that agents can call."""

from __future__ import annotations

from typing import Annotated

from deepwork.api import ToolCall, ToolSet, ToolSpec
from pydantic import BaseModel, ConfigDict, Field


class AcmeSettings(BaseModel):
    """Settings of `.deepwork/config.yml`, below `plugins: {settings: {acme: …}}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    greeting: str = "Hello"


class Greeting(BaseModel):
    """What the tool answers; agents see these fields and their descriptions."""

    text: str = Field(description="The greeting")
    principal: str = Field(description="Who has asked for it")


def tool_set(settings: AcmeSettings) -> ToolSet:
    """Bind the tools to the settings."""

    async def greet(name: Annotated[str, Field(description="Whom to greet")], call: ToolCall) -> Greeting:
        """Greet a person. Agents read this sentence when they choose a tool."""
        return Greeting(text=f"{settings.greeting}, {name}!", principal=call.principal)

    return ToolSet(
        name="acme",
        prefix="acme_",
        tools=[ToolSpec("greet", greet, title="Greet somebody", read_only=True, idempotent=True, output=Greeting)],
    )
