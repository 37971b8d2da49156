"""Has a setting that a project can set only if its user trusts it."""

from typing import Annotated

from pydantic import BaseModel

from deepwork import hookimpl
from deepwork.api import NeedsTrust, ToolSet, ToolSpec


class Settings(BaseModel, extra="forbid"):
    url: Annotated[str, NeedsTrust()] = "http://localhost"


@hookimpl
def deepwork_tool_sets(context):
    url = context.settings(Settings).url

    def where() -> str:
        """Return where it looks."""
        return url

    yield ToolSet("trusting", [ToolSpec("where", where, title="Where", output="text")], prefix="trusting_")
