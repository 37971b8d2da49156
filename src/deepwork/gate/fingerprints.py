"""Fingerprints of files, so that a verdict holds for the contents that were judged and no others."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from deepwork.errors import PathRefused
from deepwork.files.paths import describe, open_regular

_CHUNK = 256 * 1024


class Fingerprint(NamedTuple):
    """A file at one moment. `identity` differs even if another file was put in its place and taken away again."""

    digest: str
    identity: tuple[int, ...] = ()


Fingerprints = Mapping[str, Fingerprint]


def take_fingerprints(paths: Iterable[str], roots: Sequence[Path]) -> Fingerprints:
    """Read files whole, and keep what tells them from any others."""
    return {path: _fingerprint(path, roots) for path in dict.fromkeys(paths)}


def digest_of(*parts: object) -> str:
    """Digest several values so that no part can pass for another."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def digests(fingerprints: Fingerprints, paths: Iterable[str]) -> list[tuple[str, str]]:
    """Give path and digest of each of these files."""
    return [(path, fingerprints[path].digest) for path in paths]


def changed_files(before: Fingerprints, after: Fingerprints) -> list[str]:
    """Name the files that are not what they were."""
    return [path for path in before if before[path] != after[path]]


def _fingerprint(path: str, roots: Sequence[Path]) -> Fingerprint:
    try:
        with open_regular(path, roots) as (_, descriptor):
            digest = hashlib.sha256()
            while chunk := os.read(descriptor, _CHUNK):
                digest.update(chunk)
            status = os.fstat(descriptor)
    except FileNotFoundError:
        return Fingerprint("not found")
    except (PathRefused, OSError) as error:
        return Fingerprint(describe(error))
    identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return Fingerprint(f"sha256:{digest.hexdigest()}", identity)
