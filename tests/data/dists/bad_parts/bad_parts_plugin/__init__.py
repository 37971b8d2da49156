"""A runner that cannot be made, and a store of the wrong type."""

from deepwork import hookimpl
from deepwork.api import ReviewRunnerSpec, StateStoreSpec


def create():
    raise OSError("no such model")


@hookimpl
def deepwork_review_runners():
    yield ReviewRunnerSpec(name="parts", create=create, max_inline_files=0)


@hookimpl
def deepwork_state_stores():
    yield StateStoreSpec(name="parts", open=lambda workspace: {})
