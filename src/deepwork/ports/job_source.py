"""Where jobs come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

from deepwork.errors import JobLoadError
from deepwork.models.jobs import Job


class JobSource(ABC):
    """A place that has jobs. Called from worker threads, several at once; may read files.

    Attributes:
        name: Unique among all sources.
        rank: Sources are asked in the order of rank, then of name: project jobs have 0, packaged ones
            50, additional folders 60. Of two jobs with the same name the one of the earlier source is used.
    """

    name: str
    rank: int = 100

    @abstractmethod
    def load(self) -> Iterable[Job | JobLoadError]:
        """Yield every job, and an error for every broken job.

        Raises:
            JobError: The source cannot be read as a whole; the other sources are used all the same.
        """

    def holds(self, job_dir: Path) -> bool:
        """True if this source has a job, or a broken one, in this folder.

        Instructions are read only from such folders: a stored session may name any.
        """
        return any(item.job_dir == job_dir for item in self.load())

    def find(self, job_name: str) -> Job | JobLoadError | None:
        """Return this source's item of this name: by the job's name, else by its folder's."""
        items = list(self.load())
        for item in items:
            if isinstance(item, Job) and item.name == job_name:
                return item
        for item in items:
            folder = item.job_dir.name if isinstance(item, Job) else item.job_name
            if folder == job_name:
                return item
        return None
