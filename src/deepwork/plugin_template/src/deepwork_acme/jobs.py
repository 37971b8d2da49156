"""The jobs that ship with this plugin: each a folder with a `job.yml`, below `packaged_jobs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deepwork.api import Job, JobReader, JobSource
from deepwork.errors import JobLoadError

FOLDER = Path(__file__).parent / "packaged_jobs"


class AcmeJobs(JobSource):
    """Reads them with the core's own reader, which remembers what has not changed."""

    name = "acme"
    rank = 70

    def __init__(self, folder: Path = FOLDER) -> None:
        self._reader = JobReader(folder)

    def load(self) -> Iterator[Job | JobLoadError]:
        """Yield each folder's job, or its error."""
        for name in self._reader.names():
            if item := self._reader.read(name):
                yield item
