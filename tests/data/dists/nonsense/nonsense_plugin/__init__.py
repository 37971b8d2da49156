"""Its hook gives something that is no record."""

from deepwork import hookimpl


@hookimpl
def deepwork_state_stores():
    yield 7
