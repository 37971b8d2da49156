"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class OrchestrationSettings(BaseModel):
    """`plugins.settings.orchestration`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # No agent sends a heartbeat while a command runs, so a lease outlasts a long test run.
    lease_seconds: Annotated[int, Field(ge=1, le=7 * 24 * 3600)] = 600
