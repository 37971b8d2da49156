"""Ids of things that plugins store."""

from __future__ import annotations

import secrets

LENGTH = 12

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(prefix: str) -> str:
    """Make an id that cannot be guessed: `wf` gives `wf_` and twelve digits and letters."""
    return f"{prefix}_{''.join(secrets.choice(_ALPHABET) for _ in range(LENGTH))}"
