"""What can be set under `plugins.settings.review`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ReviewSettings(BaseModel):
    """The settings of this plugin.

    Attributes:
        base: The branch, tag or commit to compare changes with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str | None = None
