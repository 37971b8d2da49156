"""Its hook raises."""

from deepwork import hookimpl


@hookimpl
def deepwork_job_sources():
    raise RuntimeError("the moon is in the wrong phase")
