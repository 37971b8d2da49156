"""Draws what `deepwork demo` prints: `python tools/exchange_picture.py FILE.svg`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from deepwork.builtin.demo.command import demo

# The first words and the last are for people at a terminal.
ACTS = slice(2, -2)


def main(file: Path) -> None:
    """Play it, and draw what was printed."""
    played = CliRunner().invoke(demo, color=True, catch_exceptions=False)
    if played.exit_code:
        sys.exit(played.output)
    printed = re.sub(r"/\S*/deepwork-demo-\w+", "…", "\n".join(played.stdout.splitlines()[ACTS]))
    console = Console(width=118, record=True, file=io.StringIO())
    console.print(Text.from_ansi(printed))
    # Without the web fonts that rich would have the reader's browser fetch.
    file.write_text(re.sub(r"@font-face {.*?}", "", console.export_svg(title="deepwork demo"), flags=re.DOTALL))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
