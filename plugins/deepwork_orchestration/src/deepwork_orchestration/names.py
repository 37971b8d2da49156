"""Names of agents and bodies of messages, as people and other agents are shown them."""

from __future__ import annotations

import json
import re
from typing import Any
from unicodedata import normalize

from deepwork.text import quoted

# What stands for the sender of messages that no agent has sent.
SYSTEM = "the system"

_NAMES_OF_THE_SYSTEM = frozenset({"system", "thesystem", "deepwork"})
# Everything but letters and digits, and the two letters of Hangul that are drawn as nothing.
_NOT_ALPHANUMERIC = re.compile(r"[\W_\u115f\u1160]+")


def is_name_of_the_system(name: str) -> bool:
    """True if people would read a name as that of the system: in any case, width and spacing."""
    return _NOT_ALPHANUMERIC.sub("", normalize("NFKC", name).casefold()) in _NAMES_OF_THE_SYSTEM


def shown_agent(agent_id: str, name: str) -> str:
    """Return an agent's name with its id, which no other agent can have."""
    return f"agent {agent_id} ({quoted(name)})"


def body_text(body: Any) -> str:
    """Return the body of a message as text; objects and lists as JSON."""
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
