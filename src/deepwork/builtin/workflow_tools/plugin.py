"""The hooks of the feature `workflow_tools`."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork import hookimpl
from deepwork.api import Engine, ToolSet
from deepwork.builtin.workflow_tools.tools import tool_set


@hookimpl
def deepwork_tool_sets(engine: Engine) -> Iterator[ToolSet]:
    """The set `core`."""
    yield tool_set(engine)
