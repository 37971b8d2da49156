"""FLOOR: a minimal FastMCP server, to which others are compared. It has one echo tool.

With `--answer FILE` it has two more, to compare large answers: `text` answers with so many letters, `table` with the
JSON object of that file. With `--port PORT` it serves over HTTP.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP

floor = FastMCP("floor")


@floor.tool
def echo(text: str) -> str:
    """Answer with the same text."""
    return text


def add_large_answers(file: Path) -> None:
    """Add the tools with large answers."""
    answer = json.loads(file.read_bytes())

    @floor.tool
    def text(size: int) -> str:
        return "x" * size

    @floor.tool
    def table() -> dict[str, Any]:
        return dict(answer)


if __name__ == "__main__":
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    if "--answer" in options:
        add_large_answers(Path(options["--answer"]))
    if "--port" in options:
        quiet = {"access_log": False}
        floor.run(transport="http", port=int(options["--port"]), show_banner=False, uvicorn_config=quiet)
    else:
        floor.run(show_banner=False)
