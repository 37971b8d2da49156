"""What the user has allowed a project to do that could run programs or reach outside of it.

Kept in the user's state folder, never in the project: a repository cannot trust itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.paths.folder import Folder
from deepwork.programs.copies import ProjectFile

log = logging.getLogger("deepwork.trust")

FILE_NAME = "trust.json"
# So many refusals of plugins are remembered for a project: a repository can cause any number.
MAX_REFUSALS = 100
MAX_REFUSAL_BYTES = 64 * 1024
# What was shown when something was trusted is kept up to this size, to show later what has changed.
MAX_SHOWN = 256 * 1024

Record = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class TrustRequest:
    """What a project asks for: a setting or a command, and the files of the project that it names."""

    label: str
    content: Any
    files: Mapping[str, ProjectFile] = field(default_factory=dict)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each file, by its path."""
        return {path: file.digest for path, file in self.files.items()}

    @property
    def digest(self) -> str:
        """The digest of all that is trusted."""
        content = self.content
        if self.files:
            content = [content, self.digests]
        return _digest(content)

    @property
    def words_digest(self) -> str:
        """The digest of the words alone."""
        return _digest(self.content)

    @property
    def shown(self) -> str:
        """The text that its user looks at: the words, then each file."""
        words = self.content if isinstance(self.content, str) else json.dumps(self.content, indent=2)
        files = [f"--- {path} ---\n{file.content.decode(errors='replace')}" for path, file in self.files.items()]
        return "\n".join([words, *files])


class Trust:
    """The decisions of one user about one project. Content is trusted, not names: changed content is asked again.

    Attributes:
        refusals: What was refused to this object, by label, for messages to the user.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._project = str(root)
        self._folder = folder
        self.refusals: dict[str, Any] = {}

    def allows(self, label: str, content: Any) -> bool:
        """True if the user has trusted exactly this content. Writes nothing."""
        if self.allows_request(TrustRequest(label, content)):
            return True
        self.refusals[label] = content
        return False

    def allows_request(self, request: TrustRequest) -> bool:
        """True if the user has trusted exactly these words and files. Writes nothing."""
        return _granted_digest(self._record()["granted"].get(request.label)) == request.digest

    def allows_apart_from(self, request: TrustRequest | None, files: Iterable[ProjectFile]) -> bool:
        """True if the user has trusted these words, and of the files at least these; the others may have changed."""
        granted = self._record()["granted"].get(request.label) if request else None
        if request is None or not isinstance(granted, dict) or granted.get("words") != request.words_digest:
            return False
        trusted = granted.get("files")
        return isinstance(trusted, dict) and all(trusted.get(file.path) == file.digest for file in files)

    def remember_refusal(self, label: str, content: Any) -> None:
        """Keep a refusal that only shows at use, so that a later `deepwork trust` can ask about it."""
        refused = self._record()["refused"]
        is_small = len(refused) < MAX_REFUSALS and len(json.dumps(content, default=str)) <= MAX_REFUSAL_BYTES
        if refused.get(label) != content and (is_small or label in refused):
            self._change(lambda record: record["refused"].update({label: content}))

    def refused(self) -> dict[str, Any]:
        """Return what the project asks for and is not trusted, by label: at its use, or to this object."""
        return {**self._record()["refused"], **self.refusals}

    def granted(self) -> list[str]:
        """Name what is trusted."""
        return sorted(self._record()["granted"])

    def shown_before(self, label: str) -> str | None:
        """Return the text that was shown when this label was trusted."""
        granted = self._record()["granted"].get(label)
        return granted.get("shown") if isinstance(granted, dict) else None

    def grant(self, requests: Iterable[TrustRequest]) -> None:
        """Trust exactly these, in one write, and forget every refusal: what is still wanted is asked for again."""
        entries = {
            request.label: {
                "digest": request.digest,
                "shown": request.shown if _fits(request.shown) else None,
                **({"words": request.words_digest, "files": request.digests} if request.files else {}),
            }
            for request in requests
        }

        def change(record: Record) -> None:
            record["granted"].update(entries)
            record["refused"].clear()

        self._change(change)

    def revoke(self) -> list[str]:
        """Trust nothing of this project any more."""
        granted = self.granted()
        self._change(lambda record: record["granted"].clear())
        return granted

    def _record(self) -> Record:
        try:
            with Folder.open(self._folder, inside=self._folder) as folder:
                return _parse(folder.read(FILE_NAME))[self._project]
        except (OSError, KeyError):
            return {"granted": {}, "refused": {}}

    def _change(self, change: Callable[[Record], None]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (
                Folder.open(self._folder, inside=self._folder) as folder,
                folder.locked("trust.lock", subject="your trusted settings"),
            ):
                everything = _parse(folder.read(FILE_NAME))
                change(everything.setdefault(self._project, {"granted": {}, "refused": {}}))
                content = json.dumps(everything, indent=2, sort_keys=True).encode() + b"\n"
                folder.replace(FILE_NAME, content)
        except OSError as error:
            log.warning("%s cannot be written (%s): nothing new is trusted", self._folder / FILE_NAME, error.strerror)


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _granted_digest(entry: Any) -> str | None:
    """Return the digest of an entry; the first files had nothing else."""
    return entry.get("digest") if isinstance(entry, dict) else entry


def _fits(shown: str) -> bool:
    return len(shown) <= MAX_SHOWN


def _parse(content: bytes | None) -> dict[str, Record]:
    """Read the file; a damaged file trusts nothing."""
    try:
        projects = json.loads(content or b"{}")
        return {
            root: {"granted": {**record["granted"]}, "refused": {**record["refused"]}}
            for root, record in projects.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
