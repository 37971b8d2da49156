"""Its hooks raise, each in its own way."""

import sys

from deepwork import hookimpl


@hookimpl
def deepwork_job_sources():
    raise RuntimeError("the moon is in the wrong phase")


@hookimpl
def deepwork_state_stores():
    sys.exit("no licence found")


@hookimpl
def deepwork_review_runners():
    yield from {}["nobody"]


@hookimpl
def deepwork_tool_sets():
    return 7
