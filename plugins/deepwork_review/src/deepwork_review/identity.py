"""What makes a review the same review as an earlier one.

A review that has passed is left out for as long as nothing changes that could change its result: the rule with all its
text, its folder, the platform and its reviewer, every file with its content, and all else in the instructions.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.errors import PathRefused
from deepwork.paths.paths import open_regular
from deepwork_review.changed import Changes
from deepwork_review.material import Material
from deepwork_review.rules import Rule

VERSION = 1
DELETED = "deleted"
UNREADABLE = "unreadable"

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")

Components = Mapping[str, Any]


@dataclass(frozen=True)
class Identity:
    """Everything that could change the result of a review, by name, and one digest of it."""

    components: Components
    review_id: str
    digest: str


class Identifier:
    """Gives the reviews of one change their identities. Every file is read once."""

    def __init__(self, root: Path, changes: Changes, platform: str) -> None:
        self._root = root
        self._changes = changes
        self._platform = platform
        self._file_digests: dict[str, str] = {}
        self._unchanged_digests: dict[str, str] = {}

    def identify(self, material: Material) -> Identity:
        """Return an id of a review that people can read, and that differs as soon as any component does."""
        components = self._components(material)
        text = json.dumps({"version": VERSION, **components}, sort_keys=True, separators=(",", ":"))
        digest = sha256(text.encode()).hexdigest()
        return Identity(components, f"{material.rule.name[:100]}--{_files_part(material.paths)}--{digest[:12]}", digest)

    def _components(self, material: Material) -> dict[str, Any]:
        """Name each component by a key of its own, so that a text cannot move from one to another unnoticed."""
        rule, review = material.rule, material.rule.body.review
        return {
            "rule": _rule_components(rule),
            "folder": rule.folder,
            "strategy": review.strategy.value,
            "platform": self._platform,
            "agent": review.agent.get(self._platform),
            "files": {
                **{path: self._file_digest(path) for path in material.files},
                **dict.fromkeys(material.deleted, DELETED),
            },
            "unchanged files": self._unchanged_digest(material),
            "names of changed files": None if material.changed is None else self._names_digest,
            "reference files": [
                [reference.path, reference.description, reference.problem or text_digest(reference.content or "")]
                for reference in material.references
            ],
            "precomputed": None if material.precomputed is None else text_digest(material.precomputed),
        }

    def _file_digest(self, path: str) -> str:
        if path not in self._file_digests:
            self._file_digests[path] = file_digest(self._root, path)
        return self._file_digests[path]

    @cached_property
    def _names_digest(self) -> str:
        return text_digest(json.dumps([self._changes.files, self._changes.deleted]))

    def _unchanged_digest(self, material: Material) -> str | None:
        """Digest all unchanged files of a rule together; they are the same for each of its reviews."""
        place = material.rule.place
        if material.unchanged and place not in self._unchanged_digests:
            digests = [(path, self._file_digest(path)) for path in material.unchanged]
            self._unchanged_digests[place] = text_digest(json.dumps([digests, material.unchanged_left_out]))
        return self._unchanged_digests.get(place)


def _rule_components(rule: Rule) -> dict[str, Any]:
    body = rule.body
    return {
        "name": rule.name,
        "description": body.description,
        "include": list(body.match.include),
        "exclude": list(body.match.exclude),
        "deletions": body.match.deletions,
        "instructions": text_digest(rule.instructions),
        "additional_context": body.review.additional_context.model_dump(),
        "command": body.review.precomputed_info_for_reviewer_bash_command,
    }


def _files_part(paths: Iterable[str]) -> str:
    names = sorted(paths)
    joined = _UNSAFE.sub("-", "_AND_".join(names))
    return joined if len(joined) <= 100 else f"{len(names)}_files"


def file_digest(root: Path, path: str) -> str:
    """Digest a file's kind and content. A file that cannot be read never gets the same digest twice."""
    try:
        if stat.S_ISLNK(os.lstat(root / path).st_mode):
            return f"link {sha256(os.fsencode(os.readlink(root / path))).hexdigest()}"
        with open_regular(path, [root]) as (_, descriptor):
            kind = "program" if os.fstat(descriptor).st_mode & stat.S_IXUSR else "file"
            with os.fdopen(os.dup(descriptor), "rb") as file:
                digest = sha256()
                while chunk := file.read(1024 * 1024):
                    digest.update(chunk)
        return f"{kind} {digest.hexdigest()}"
    except (PathRefused, OSError):
        return f"{UNREADABLE} {secrets.token_hex(16)}"


def text_digest(text: str) -> str:
    """Digest a text."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def is_unchanged(root: Path, path: str, digest: str) -> bool:
    """True if a file still has the digest in the components of an identity."""
    if digest == DELETED:
        return not os.path.lexists(root / path)
    # The digest of an unreadable file never repeats, so it says nothing about a change.
    return digest.startswith(UNREADABLE) or digest == file_digest(root, path)


def difference(before: Components, after: Components, prefix: str = "") -> Iterator[str]:
    """Name the components that differ."""
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        name = f"{prefix}: {key}" if prefix else key
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from difference(old, new, name)
        elif key not in before or key not in after:
            yield f"{name} ({'new' if key not in before else 'gone'})"
        else:
            yield name
