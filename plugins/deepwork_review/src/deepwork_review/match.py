"""Whether a rule applies to a file: globs, translated by wcmatch and bounded in time."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from math import comb

import bracex
from wcmatch import glob as wcmatch

FLAGS = wcmatch.GLOBSTAR | wcmatch.DOTGLOB | wcmatch.BRACE | wcmatch.CASE | wcmatch.FORCEUNIX
MAX_LENGTH = 256
MAX_GLOBSTARS = 4
MAX_ALTERNATIVES = 64
# In how many ways the `**` of a glob may divide a path; to try 250,000 takes about 20 ms.
MAX_WAYS = 250_000
MAX_SECONDS = 2.0
# Files that are matched between two readings of the clock.
BATCH = 16
AFTER_SLASH = chr(ord("/") + 1)

_STARS_WITHIN = re.compile(r"\*\*+")


class Globs:
    """Globs of one rule, as one regular expression.

    Attributes:
        match: Matches a whole path with any of the globs.
        globstars: The most `**` in one of them. From two on, the ways in which they may divide a path multiply.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        regexes = [regex for pattern in patterns for regex in _regexes(pattern)]
        self.match = re.compile("|".join(regexes) or r"(?!)").fullmatch
        self.globstars = max((normal(pattern).count("**") for pattern in patterns), default=0)
        self._count = len(regexes)

    def ways(self, depth: int) -> int:
        """Return the worst-case number of ways to divide a path."""
        return comb(depth, self.globstars) * self._count


class Matcher:
    """The globs of one rule, with the time that they may take in total.

    Attributes:
        gave_up: Why files were counted as matching without being tried; None if all were tried.
        seconds_left: What is left of the time; below 0 nothing more is tried.
    """

    def __init__(
        self, folder: str, include: Sequence[str], exclude: Sequence[str] = (), *, seconds: float = MAX_SECONDS
    ) -> None:
        self._prefix = f"{folder}/" if folder else ""
        self._include = compiled(tuple(include))
        self._exclude = compiled(tuple(exclude))
        self._risky = max(self._include.globstars, self._exclude.globstars) > 1
        self.seconds_left = min(seconds, MAX_SECONDS)
        self.gave_up: str | None = None

    def matches(self, path: str) -> bool:
        """True if the rule applies to a file of the project, or if that would take too long to find out."""
        return bool(self.select([path]))

    def select(self, paths: Sequence[str]) -> list[str]:
        """Choose the files to which the rule applies. The paths must be sorted."""
        first = bisect_left(paths, self._prefix)
        last = bisect_left(paths, self._prefix[:-1] + AFTER_SLASH) if self._prefix else len(paths)
        selected: list[str] = []
        for start in range(first, last, BATCH):
            batch = paths[start : min(start + BATCH, last)]
            if self.seconds_left < 0:
                self.gave_up = f"its globs, or those of all rules, took longer than {MAX_SECONDS:g} s"
                selected += batch
                continue
            started = time.perf_counter()
            selected += filter(self._decide if self._risky else self._match, batch)
            self.seconds_left -= time.perf_counter() - started
        return selected

    def _decide(self, path: str) -> bool:
        depth = path.count("/") + 1 - self._prefix.count("/")
        if self._include.ways(depth) > MAX_WAYS or self._exclude.ways(depth) > MAX_WAYS:
            self.gave_up = "its globs could take too long on very deep paths"
            return True
        return self._match(path)

    def _match(self, path: str) -> bool:
        below = path[len(self._prefix) :]
        return self._include.match(below) is not None and self._exclude.match(below) is None


@lru_cache(maxsize=4096)
def compiled(patterns: tuple[str, ...]) -> Globs:
    """Compile globs once for all calls."""
    return Globs(patterns)


def refuse_glob(glob: str) -> str:
    """Return a glob if it can be matched in bounded time.

    Raises:
        ValueError: It cannot.
    """
    if not glob.strip("/"):
        raise ValueError("names no file")
    if len(glob) > MAX_LENGTH:
        raise ValueError(f"has more than {MAX_LENGTH} characters")
    if normal(glob).count("**") > MAX_GLOBSTARS:
        raise ValueError(f"has more than {MAX_GLOBSTARS} '**'; write it as several globs")
    try:
        bracex.expand(normal(glob), keep_escapes=True, limit=MAX_ALTERNATIVES)
        _regexes(glob)
    except bracex.ExpansionLimitException:
        raise ValueError(f"has braces for more than {MAX_ALTERNATIVES} globs; write it as several") from None
    return glob


def normal(glob: str) -> str:
    """Write a glob in wcmatch's dialect.

    A leading `/` or `./` is dropped, because a rule's globs start in its folder anyway. Repeated `**/` become one. A
    `**` next to other characters, as in `**.py`, crosses folders as it did in version 0.9.3; together with classes or
    braces, which 0.9.3 did not have, it is a `*`.
    """
    glob = re.sub(r"^(\./|/)+", "", glob)
    glob = re.sub(r"(?<![^/])(\*\*+/)+", "**/", glob)
    if any(char in glob for char in "[{\\"):
        return glob
    parts = (
        "**" if set(part) == {"*"} and len(part) > 1 else _STARS_WITHIN.sub("{*,*/**/*}", part)
        for part in glob.split("/")
    )
    return "/".join(parts)


@lru_cache(maxsize=8192)
def _regexes(glob: str) -> tuple[str, ...]:
    regexes, _ = wcmatch.translate(normal(glob), flags=FLAGS, limit=MAX_ALTERNATIVES)
    return tuple(regexes)
