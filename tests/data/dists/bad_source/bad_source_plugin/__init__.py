"""A job source whose database is away."""

from deepwork import hookimpl
from deepwork.api import JobSource


class FarJobs(JobSource):
    name = "far"

    def load(self):
        raise RuntimeError("the database is away")


@hookimpl
def deepwork_job_sources():
    yield FarJobs()
