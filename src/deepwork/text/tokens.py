"""What tools cost a model that reads them."""

from __future__ import annotations

import json
from typing import Any


def tokens_of(name: str, description: str | None, schema: Any) -> int:
    """Return about how many tokens a tool costs with every request; about four characters are a token."""
    return len(f"{name}{description}{json.dumps(schema, separators=(',', ':'))}") // 4
