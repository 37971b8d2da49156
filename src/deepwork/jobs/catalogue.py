"""All jobs of all sources: which are listed, and which one a name stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deepwork.errors import JobLoadError
from deepwork.models.jobs import Job
from deepwork.ports.job_source import JobSource


@dataclass(frozen=True)
class ShadowedJob:
    """A job that is hidden by another one of the same name in an earlier source."""

    job: Job
    source: str
    by: str


@dataclass(frozen=True)
class Listing:
    """What all sources have: each name once."""

    jobs: tuple[tuple[str, Job], ...]
    errors: tuple[tuple[str, JobLoadError], ...]
    shadowed: tuple[ShadowedJob, ...]


# What each source has, in their order.
Loaded = list[list[Job | JobLoadError]]


class Catalogue:
    """The jobs of all sources, asked by rank, then by name. What is listed can be started."""

    def __init__(self, sources: Iterable[JobSource]) -> None:
        self.sources = sorted(sources, key=lambda source: (source.rank, source.name))
        self._last: tuple[Loaded, Listing] = [], Listing((), (), ())

    def list(self) -> Listing:
        """List every job that can be started, and everything that is broken."""
        loaded = [[*source.load()] for source in self.sources]
        last_loaded, listing = self._last
        # Unchanged jobs are the same objects, which are equal at once. Of broken ones `find` has to be asked anew.
        if loaded != last_loaded or listing.errors:
            listing = self._listing(loaded)
            self._last = loaded, listing
        return listing

    def _listing(self, loaded: Loaded) -> Listing:
        jobs: list[tuple[str, Job]] = []
        errors: list[tuple[str, JobLoadError]] = []
        shadowed: list[ShadowedJob] = []
        owners: dict[str, str] = {}
        for source, items in zip(self.sources, loaded, strict=True):
            taken: dict[str, str] = {}
            for item in items:
                if isinstance(item, JobLoadError):
                    errors.append((source.name, item))
                    # A broken job still owns its folder's name, so that no later source silently replaces it.
                    # `find` follows the same rule.
                    if isinstance(source.find(item.job_name), JobLoadError):
                        taken.setdefault(item.job_name, source.name)
                elif item.name in owners:
                    shadowed.append(ShadowedJob(item, source.name, owners[item.name]))
                else:
                    jobs.append((source.name, item))
                    taken[item.name] = source.name
            owners = {**taken, **owners}
        return Listing(tuple(jobs), tuple(errors), tuple(shadowed))

    def find(self, job_name: str) -> Job | JobLoadError | None:
        """Find the job that a name stands for.

        The first source that has a job of this name, or a broken job in a folder of this name, decides. A folder of
        this name whose job has another name comes last.
        """
        by_folder: Job | None = None
        for source in self.sources:
            job = source.find(job_name)
            if isinstance(job, JobLoadError) or (job is not None and job.name == job_name):
                return job
            by_folder = by_folder or job
        return by_folder

    def folder_of(self, job: Job | JobLoadError | None, stored: Path | None) -> Path | None:
        """Return the folder of a session's job: the stored one if a source gives it, else that of the job of its name.

        A session file may name any folder of the machine, so the stored one alone proves nothing.
        """
        if job is not None and job.job_dir == stored:
            return stored
        if stored is not None and any(source.holds(stored) for source in self.sources):
            return stored
        return job.job_dir if job is not None else None
