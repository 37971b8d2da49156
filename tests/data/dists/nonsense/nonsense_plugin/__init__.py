"""Its hook returns something other than a record."""

from deepwork import hookimpl


@hookimpl
def deepwork_state_stores():
    yield 7
