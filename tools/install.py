"""Runs `pip install` with these arguments, and names each package as pip comes to it: `make setup`.

It needs nothing but Python, because nothing is installed yet. If pip fails, all that it has printed is shown.
"""

from __future__ import annotations

import re
import subprocess
import sys

WIDTH = 78
COLLECTING = re.compile(r"Collecting ([\w.-]+)")
INSTALLING = re.compile(r"Installing collected packages: (.+)")


def main(arguments: list[str]) -> int:
    """Install, and return pip's exit code."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    pip = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert pip.stdout
    lines: list[str] = []
    column = 0
    for line in pip.stdout:
        lines.append(line)
        if word := sign_of_life(line):
            if column and column + 1 + len(word) > WIDTH:
                print()
                column = 0
            print(f"{' ' if column else '  '}{word}", end="", flush=True)
            column += len(word) + (1 if column else 2)
    if column:
        print()
    if pip.wait():
        print("".join(lines), file=sys.stderr)
    return pip.returncode


def sign_of_life(line: str) -> str:
    """Return the word that stands for a line of pip; "" for most lines."""
    if match := COLLECTING.match(line):
        return match[1]
    if match := INSTALLING.match(line):
        return f"… installing {match[1].count(',') + 1} packages"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
