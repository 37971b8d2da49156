"""How a session is written to its file: JSON that a person can read."""

from __future__ import annotations

from threading import Lock

from deepwork.models.sessions import PinnedDefinition, Session

# A text in JSON has no line breaks, so only a field of the session itself can begin a line like this.
_FIELD = '\n  "definition": '
_WITHOUT = f"{_FIELD}null"
_WRITTEN_DEFINITIONS = 8


class SessionWriter:
    """Writes sessions, and the definition of each, which takes longest and never changes, once. For any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._definitions: dict[int, tuple[PinnedDefinition, str]] = {}

    def written(self, session: Session) -> bytes:
        """Return the content of a session's file."""
        if session.definition is None:
            text = session.model_dump_json(indent=2)
        else:
            rest = session.model_copy(update={"definition": None}).model_dump_json(indent=2)
            text = rest.replace(_WITHOUT, _FIELD + self._definition(session.definition), 1)
        return text.encode() + b"\n"

    def _definition(self, definition: PinnedDefinition) -> str:
        """Return the JSON of a definition as it stands in that of its session."""
        known, text = self._definitions.get(id(definition), (None, ""))
        if known is not definition:
            text = definition.model_dump_json(indent=2).replace("\n", "\n  ")
            with self._lock:
                self._definitions[id(definition)] = definition, text
                if len(self._definitions) > _WRITTEN_DEFINITIONS:
                    del self._definitions[next(iter(self._definitions))]
        return text
