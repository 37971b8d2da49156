"""Its hook is async, which pluggy would lose in silence."""

from deepwork import hookimpl


@hookimpl
async def deepwork_tool_sets():
    return []
