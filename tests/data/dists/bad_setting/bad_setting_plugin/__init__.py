"""Needs a setting that is not set, in two of its hooks."""

from pydantic import BaseModel

from deepwork import hookimpl
from deepwork.api import Check, Finding, Level, ToolSet


class Settings(BaseModel, extra="forbid"):
    url: str


@hookimpl
def deepwork_checks(context):
    url = context.settings(Settings).url
    yield Check("far", lambda: [Finding(Level.OK, url)])


@hookimpl
def deepwork_tool_sets():
    yield ToolSet("far", [])
