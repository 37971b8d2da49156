"""Jobs in folders: the project's, DeepWork's own, and those of named folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from deepwork import hookimpl
from deepwork.api import Job, JobReader, JobSource, PluginContext
from deepwork.errors import JobLoadError
from deepwork.text import visible

EXTRA_FOLDERS = "DEEPWORK_ADDITIONAL_JOBS_FOLDERS"
# For each reader, whether its folder is a link out of its place, and what it has read.
Items = list[tuple[bool, list[Job | JobLoadError]]]
PACKAGED = Path(__file__).parent.parent / "packaged_jobs"


class FolderJobs(JobSource):
    """The jobs of some folders, in their order: `<folder>/<job>/job.yml`."""

    def __init__(self, name: str, rank: int, readers: Iterable[JobReader]) -> None:
        self.name = name
        self.rank = rank
        self._readers = list(readers)
        self._last: tuple[Items, list[Job | JobLoadError]] = [], []

    def load(self) -> Iterable[Job | JobLoadError]:
        """List each folder's jobs, sorted by folder name; the second of a name is an error."""
        items = [(reader.escapes, reader.read_all()) for reader in self._readers]
        last_items, loaded = self._last
        if items != last_items:  # unchanged jobs are the same objects, which are equal at once
            loaded = [*self._chosen(items)]
            self._last = items, loaded
        return loaded

    def _chosen(self, items_of_readers: Items) -> Iterator[Job | JobLoadError]:
        owners: dict[str, Path] = {}
        for reader, (escapes, items) in zip(self._readers, items_of_readers, strict=True):
            if escapes:
                text = "the folder of the project's jobs is a link that leads out of the project"
                yield JobLoadError(text, job_name=reader.folder.name, job_dir=reader.folder)
            # As in `find`, a folder that is broken, or has the name of its job, comes before other folders.
            for item in items:
                if isinstance(item, JobLoadError) or item.job_dir.name == item.name:
                    owners.setdefault(item.job_dir.name, item.job_dir)
            for item in items:
                if isinstance(item, JobLoadError) or owners.setdefault(item.name, item.job_dir) == item.job_dir:
                    yield item
                else:
                    owner = visible(str(owners[item.name]))
                    text = f"its job is named {item.name!r}, as that of {owner}, which comes first"
                    yield JobLoadError(text, job_name=item.job_dir.name, job_dir=item.job_dir)

    def holds(self, job_dir: Path) -> bool:
        """Look into this folder only."""
        return any(reader.folder == job_dir.parent and reader.read(job_dir.name) for reader in self._readers)

    def find(self, job_name: str) -> Job | JobLoadError | None:
        """Look into the folder of that name first, and into the other folders only if it has no job of that name."""
        by_folder: Job | None = None
        for reader in self._readers:
            job = reader.read(job_name)
            if isinstance(job, JobLoadError) or (job is not None and job.name == job_name):
                return job
            by_folder = by_folder or job
            for item in reader.read_all():
                if isinstance(item, Job) and item.name == job_name:
                    return item
        return by_folder


@hookimpl
def deepwork_job_sources(context: PluginContext) -> Iterator[JobSource]:
    """Jobs of the project come first, then packaged ones, then those of additional folders."""
    extra = [part.strip() for part in context.environment.get(EXTRA_FOLDERS, "").split(os.pathsep)]
    root = context.project_root
    yield FolderJobs("project", 0, [JobReader(root / ".deepwork" / "jobs", inside=root)])
    yield FolderJobs("packaged", 50, [JobReader(PACKAGED)])
    folders = {os.path.realpath(root / part): root / part for part in reversed(extra) if part}  # each once
    yield FolderJobs("additional", 60, [JobReader(folder) for folder in reversed(folders.values())])
