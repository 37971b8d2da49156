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

from deepwork.workspace import locked, open_folder, read_in, replace_in

log = logging.getLogger("deepwork.trust")

FILE_NAME = "trust.json"

Record = dict[str, dict[str, Any]]


class Trust:
    """The decisions of one user about one project. Content is trusted, not names: what changes is asked again.

    Attributes:
        off: The labels that were refused here, for whoever tells the user.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._project = str(root)
        self._folder = folder
        self.off: set[str] = set()

    def allows(self, label: str, content: Any) -> bool:
        """Say whether the user has trusted exactly this content; a refusal is remembered for `deepwork trust`."""
        record = self._record()
        if record["granted"].get(label) == _digest(content):
            return True
        self.off.add(label)
        if record["refused"].get(label) != content:
            self._change(lambda kept: kept["refused"].update({label: content}))
        return False

    def refused(self) -> dict[str, Any]:
        """Give what was asked for and is not trusted, by label."""
        return self._record()["refused"]

    def granted(self) -> list[str]:
        """Name what is trusted."""
        return sorted(self._record()["granted"])

    def grant(self, contents: dict[str, Any]) -> None:
        """Trust exactly these contents."""

        def change(kept: Record) -> None:
            for label, content in contents.items():
                kept["granted"][label] = _digest(content)
                kept["refused"].pop(label, None)

        self._change(change)

    def forget_refusals(self, prefix: str) -> None:
        """Forget refusals that will be found anew if they still stand."""

        def change(kept: Record) -> None:
            kept["refused"] = {label: one for label, one in kept["refused"].items() if not label.startswith(prefix)}

        if any(label.startswith(prefix) for label in self.refused()):
            self._change(change)

    def revoke(self) -> list[str]:
        """Trust nothing of this project any more."""
        granted = self.granted()
        self._change(lambda kept: kept["granted"].clear())
        return granted

    def _record(self) -> Record:
        try:
            with open_folder(self._folder, inside=self._folder) as folder:
                return _parse(read_in(folder, FILE_NAME))[self._project]
        except (OSError, KeyError):
            return {"granted": {}, "refused": {}}

    def _change(self, change: Callable[[Record], None]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open_folder(self._folder, inside=self._folder) as folder, locked(folder, "trust.lock"):
                previous = read_in(folder, FILE_NAME)
                everything = _parse(previous)
                change(everything.setdefault(self._project, {"granted": {}, "refused": {}}))
                content = json.dumps(everything, indent=2, sort_keys=True).encode() + b"\n"
                replace_in(folder, FILE_NAME, content, previous=previous)
        except OSError as error:
            log.warning("%s cannot be written (%s): nothing new is trusted", self._folder / FILE_NAME, error.strerror)


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _parse(content: bytes | None) -> dict[str, Record]:
    """Read the file; one that is damaged trusts nothing."""
    try:
        found = json.loads(content or b"{}")
        return {root: {"granted": {**one["granted"]}, "refused": {**one["refused"]}} for root, one in found.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
