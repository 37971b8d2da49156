"""Which job folders are meant by paths and by names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from deepwork.api import Job, parse_job, project_at
from deepwork.errors import ConfigError, JobLoadError
from deepwork.models.jobs import FILE_NAME
from deepwork.text import nearest


def project_folder(root: str) -> Path:
    """Return the project's folder, absolute and free of links.

    Raises:
        ConfigError: There is no such folder.
    """
    folder = Path(os.path.realpath(root))
    if not folder.is_dir():
        raise ConfigError(f"project root {root!r} is not a folder", hint="Give an existing one: --path.")
    return folder


def job_folders(paths: Iterable[Path], root: Path) -> list[Path]:
    """Return the job folders that paths and names mean; without any, all of the project.

    Raises:
        ConfigError: The project has no folder of jobs.
    """
    named = [named_folder(path, root) for path in paths]
    return list(dict.fromkeys(_expanded(named or [_project_jobs(root)])))


def named_folder(path: Path, root: Path) -> Path:
    """Return the folder of a job of the project, or of another source, for its name; a path stays as it is.

    What lies in the current folder is meant first.

    Raises:
        ConfigError: There is neither a path nor a job of this name.
    """
    if os.path.lexists(path) or len(path.parts) != 1:
        return path
    jobs = root / ".deepwork" / "jobs"
    if os.path.isdir(jobs / path):
        return jobs / path
    job = project_at(root).catalogue().find(str(path))
    if job is not None:
        return job.job_dir
    names = [entry.name for entry in os.scandir(jobs) if entry.is_dir()] if jobs.is_dir() else []
    raise ConfigError(
        f"{str(path)!r} is neither a path nor a job of the project{nearest(str(path), names)}",
        hint="Give a job's folder, its job.yml, or the name of a job.",
    )


def load_job(path: Path, root: Path) -> Job:
    """Read the job that a path or a name means.

    Raises:
        JobLoadError: It cannot be used.
    """
    folder = named_folder(path, root)
    job = parse_job(folder)
    if isinstance(job, JobLoadError):
        raise JobLoadError(
            job.message.removeprefix("Failed to load: "),
            job_name=job.job_name,
            job_dir=job.job_dir,
        ) from None
    return job


def _project_jobs(root: Path) -> Path:
    folder = root / ".deepwork" / "jobs"
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", hint="`deepwork init` creates it, with a first job.")
    return folder


def _expanded(paths: Iterable[Path]) -> Iterator[Path]:
    """Replace a folder of jobs by its folders, and a job.yml by its folder."""
    for path in paths:
        listable = os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK)
        if path.name == FILE_NAME or os.path.lexists(path / FILE_NAME) or not listable:
            yield path.parent if path.name == FILE_NAME else path
            continue
        folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        # What has no job in any folder below it is meant to be a job itself.
        is_folder_of_jobs = path.name == "jobs" or any(os.path.lexists(folder / FILE_NAME) for folder in folders)
        yield from folders if is_folder_of_jobs else [path]
