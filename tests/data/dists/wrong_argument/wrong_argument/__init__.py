"""Its hook takes an argument that the hook does not have."""

from deepwork import hookimpl


@hookimpl
def deepwork_tool_sets(server):
    return []
