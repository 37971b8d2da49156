"""Offers a tool set under a name that another plugin has."""

from deepwork import hookimpl
from deepwork.api import ToolSet


@hookimpl
def deepwork_tool_sets():
    yield ToolSet("acme", [])
