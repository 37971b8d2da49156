"""Offers a tool under a name that the core has."""

from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec


def start_workflow() -> str:
    """Start something else."""
    return "started by another plugin"


@hookimpl
def deepwork_tool_sets():
    yield ToolSet("rival", [ToolSpec("start_workflow", start_workflow, title="Start", output="text")])
