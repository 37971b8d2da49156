"""Installs what `requirements.lock` names, and the core and all plugins as they stand here, editable: `make setup`.

It needs nothing but Python, because nothing is installed yet; `uv`, where it is on PATH, does the same in seconds.
Each package is named as the installer comes to it. If it fails, all that it has printed is shown.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH = 78
COLLECTING = re.compile(r"Collecting ([\w.-]+)")
INSTALLING = re.compile(r"Installing collected packages: (.+)")


def main() -> int:
    """Install, and return the installer's exit code."""
    if uv := shutil.which("uv"):
        install = [uv, "pip", "install", "--python", sys.executable]
    else:
        install = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    projects = [ROOT, *sorted(file.parent for file in ROOT.glob("plugins/[!_]*/pyproject.toml"))]
    editable = [word for project in projects for word in ("--editable", str(project))]
    # The lock is complete, so nothing is looked for besides: on the index, `deepwork` is another project's name.
    return run([*install, "--no-deps", "--require-hashes", "--requirement", str(ROOT / "requirements.lock")]) or run(
        [*install, "--no-deps", "--no-build-isolation", *editable]
    )


def run(command: list[str]) -> int:
    """Run an installer, name the packages, and return its exit code."""
    installer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert installer.stdout
    lines: list[str] = []
    column = 0
    for line in installer.stdout:
        lines.append(line)
        if word := sign_of_life(line):
            if column and column + 1 + len(word) > WIDTH:
                print()
                column = 0
            print(f"{' ' if column else '  '}{word}", end="", flush=True)
            column += len(word) + (1 if column else 2)
    if column:
        print()
    if installer.wait():
        print("".join(lines), file=sys.stderr)
    return installer.returncode


def sign_of_life(line: str) -> str:
    """Return the word that stands for a line of pip; "" for most lines."""
    if match := COLLECTING.match(line):
        return match[1]
    if match := INSTALLING.match(line):
        return f"… installing {match[1].count(',') + 1} packages"
    return ""


if __name__ == "__main__":
    sys.exit(main())
