"""File names as people and agents read them, with any characters."""

from __future__ import annotations

import os

EXPLANATION = "Names written as $'…' have unusual characters; a shell such as bash understands them as they stand."


def printable(name: str) -> str:
    """Write a name in one line, with every character visible, so that it can be pasted into a shell."""
    return name if is_plain(name) else f"$'{''.join(map(_escaped, name))}'"


def is_plain(name: str) -> bool:
    """True if a name can be written as it is."""
    return name.isprintable() and name == name.strip() and not name.startswith("$'")


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
