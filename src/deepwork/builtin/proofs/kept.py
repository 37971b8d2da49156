"""What proofs leave in the folder of the user: a secret, what was proved, gates that cannot fail, and refused work."""

from __future__ import annotations

import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from deepwork.paths.folder import Folder

SECRET = "proof-secret"
KEPT = "proofs"
REFUSED = "refused"
MAX_KEPT = 2000
# Of the work of one refused attempt, and of all of them; base64 takes a third more.
MAX_ATTEMPT = 4 * 1024 * 1024
MAX_REFUSED = 64 * 1024 * 1024


class KeptProofs:
    """The files of one project in the user's state. What cannot be written is not kept.

    Args:
        project: The project.
        state: The folder of the user.
    """

    def __init__(self, project: Path, state: Path) -> None:
        self._project = project
        self._state = state

    def secret(self) -> bytes:
        """Return the user's secret, which is made at first."""
        with suppress(OSError):
            self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Folder.open(self._state, inside=self._state) as folder:
                if secret := folder.read(SECRET):
                    return secret
                secret = secrets.token_bytes(32)
                folder.replace(SECRET, secret)
                return secret
        return secrets.token_bytes(32)

    def has(self, key: str) -> bool:
        """Return whether this was seen."""
        return (self._state / KEPT / key).is_file()

    def add(self, key: str) -> None:
        """Remember that this was seen; what was seen longest ago is forgotten."""
        self._write(KEPT, key, b"")
        for left in self._by_age(KEPT)[:-MAX_KEPT]:
            left.unlink(missing_ok=True)

    # Gates that cannot fail

    def weak(self) -> dict[str, str]:
        """Return the gates of this project that were seen to pass broken work, and what they passed."""
        found = self._read(KEPT, self._weak_name)
        if not isinstance(found, dict):
            return {}
        return {gate: reason for gate, reason in found.items() if isinstance(reason, str)}

    def note_weak(self, gate: str, reason: str | None) -> None:
        """Remember what a gate has passed; None if it was seen to refuse."""
        weak = self.weak()
        changed = {name: passed for name, passed in weak.items() if name != gate}
        if reason is not None:
            changed = {**weak, gate: reason}
        if changed != weak:
            self._write(KEPT, self._weak_name, json.dumps(changed).encode())

    @property
    def _weak_name(self) -> str:
        return f"weak-{sha256(str(self._project).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"

    # The work of refused attempts

    def refuse(self, place: str, files: Mapping[str, bytes]) -> None:
        """Keep what a gate has refused, in the place of what it has refused there before."""
        if sum(map(len, files.values())) > MAX_ATTEMPT:
            return
        contents = {path: b64encode(content).decode() for path, content in files.items()}
        self._write(f"{KEPT}/{REFUSED}", place, json.dumps(contents).encode())
        size = 0
        for file in reversed(self._by_age(f"{KEPT}/{REFUSED}")):
            size += file.stat().st_size
            if size > MAX_REFUSED:
                file.unlink(missing_ok=True)

    def refused(self, place: str) -> dict[str, bytes]:
        """Return what was refused last; nothing if it was not kept."""
        found = self._read(f"{KEPT}/{REFUSED}", place)
        if not isinstance(found, dict):
            return {}
        try:
            return {path: b64decode(content, validate=True) for path, content in found.items()}
        except (TypeError, ValueError):
            return {}

    def _write(self, name: str, file: str, content: bytes) -> None:
        with suppress(OSError, ValueError):
            path = self._state / name
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Folder.open(path, inside=self._state) as folder:
                folder.replace(file, content, synced=False)

    def _read(self, name: str, file: str) -> object:
        try:
            return json.loads((self._state / name / file).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def _by_age(self, name: str) -> list[Path]:
        with suppress(OSError):
            return sorted((self._state / name).glob("[0-9a-f]*"), key=lambda file: file.stat().st_mtime)
        return []
