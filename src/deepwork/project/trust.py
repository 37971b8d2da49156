"""What the user has allowed a project to do that could run programs or reach outside of it.

Kept in the user's state folder, never in the project: a repository cannot trust itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from deepwork.files.folder import Folder

log = logging.getLogger("deepwork.trust")

FILE_NAME = "trust.json"

Record = dict[str, dict[str, Any]]


class Trust:
    """The decisions of one user about one project. Content is trusted, not names: what changes is asked again.

    Attributes:
        refusals: What was refused to this object, by label, for whoever tells the user.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._project = str(root)
        self._folder = folder
        self.refusals: dict[str, Any] = {}

    def allows(self, label: str, content: Any) -> bool:
        """Say whether the user has trusted exactly this content. Writes nothing."""
        if self._record()["granted"].get(label) == _digest(content):
            return True
        self.refusals[label] = content
        return False

    def remember_refusal(self, label: str, content: Any) -> None:
        """Keep a refusal that only shows at use, so that a later `deepwork trust` can ask about it."""
        if self._record()["refused"].get(label) != content:
            self._change(lambda record: record["refused"].update({label: content}))

    def refused(self) -> dict[str, Any]:
        """Give what the project asks for and is not trusted, by label: at its use, or to this object."""
        return {**self._record()["refused"], **self.refusals}

    def granted(self) -> list[str]:
        """Name what is trusted."""
        return sorted(self._record()["granted"])

    def grant(self, contents: dict[str, Any]) -> None:
        """Trust exactly these contents."""

        def change(record: Record) -> None:
            for label, content in contents.items():
                record["granted"][label] = _digest(content)
                record["refused"].pop(label, None)

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


def _parse(content: bytes | None) -> dict[str, Record]:
    """Read the file; one that is damaged trusts nothing."""
    try:
        projects = json.loads(content or b"{}")
        return {
            root: {"granted": {**record["granted"]}, "refused": {**record["refused"]}}
            for root, record in projects.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
