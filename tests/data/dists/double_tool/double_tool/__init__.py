"""Its one set has a tool twice."""

from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec


def echo(text: str) -> str:
    """Return the text."""
    return text


@hookimpl
def deepwork_tool_sets():
    spec = ToolSpec("echo", echo, title="Echo", output="text")
    yield ToolSet("double", [spec, spec])
