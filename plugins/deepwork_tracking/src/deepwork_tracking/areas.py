"""Areas of the code that a task says it will touch, compared with the files that it has touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from pathspec import GitIgnoreSpec

_GLOB = frozenset("*?[")


def files_outside(files: Iterable[str], areas: Sequence[str]) -> list[str]:
    """List the files outside of all areas, sorted; none without areas.

    An area is a segment of a path, a file's name without its ending, the beginning of a path, or a glob. Upper and
    lower case are the same.
    """
    if not areas:
        return []
    names = {area.strip().lower().replace("\\", "/").removeprefix("./").strip("/") for area in areas}
    globs = GitIgnoreSpec.from_lines(f"/{name}" if "/" in name else f"**/{name}" for name in names if _GLOB & set(name))
    return sorted(file for file in files if not _is_inside(file.lower(), names, globs))


def _is_inside(path: str, names: set[str], globs: GitIgnoreSpec) -> bool:
    parts = path.split("/")
    prefixes = {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return not names.isdisjoint({*parts, *prefixes, PurePosixPath(path).stem}) or globs.match_file(path)
