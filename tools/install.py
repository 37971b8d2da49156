"""Installs what `requirements.lock` names, and the core and all plugins as they stand here, editable: `make setup`.

It needs nothing but Python, because nothing is installed yet; `uv`, where it is on PATH, does the same in seconds. With
`--core` it is the core alone, with what it needs, for a first look: `make demo`. Each package is named as the installer
comes to it. If it fails, all that it has printed is shown.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
WIDTH = 78
COLLECTING = re.compile(r"Collecting ([\w.-]+)")
INSTALLING = re.compile(r"Installing collected packages: (.+)")


def main() -> int:
    """Install, and return the installer's exit code."""
    install = installer(sys.executable)
    if sys.argv[1:] == ["--core"]:
        return run([*install, "--editable", str(ROOT)])
    editable = [word for folder in project_folders() for word in ("--editable", str(folder))]
    # The lock is complete, so nothing is looked for besides: on the index, `deepwork` is another project's name.
    return run([*install, "--no-deps", "--require-hashes", "--requirement", str(ROOT / "requirements.lock")]) or run(
        [*install, "--no-deps", "--no-build-isolation", *editable]
    )


def project_folders(root: Path = ROOT) -> list[Path]:
    """Return the folders of the distributions of a checkout, the core first."""
    return [root, *sorted(file.parent for file in root.glob("plugins/[!_]*/pyproject.toml"))]


def project_table(folder: Path) -> dict[str, Any]:
    """Return the table `project` of a distribution's pyproject."""
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def installer(python: str) -> list[str]:
    """Return the words that install into the environment of a Python."""
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", python]
    return [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]


def run(command: list[str]) -> int:
    """Run an installer, name the packages, and return its exit code."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        return show(process)
    except BaseException:  # another one may be started at once, and two would spoil what they install
        process.terminate()
        process.wait()
        raise


def show(process: subprocess.Popen[str]) -> int:
    """Name the packages as an installer comes to them, and return its exit code."""
    assert process.stdout
    lines: list[str] = []
    column = 0
    for line in process.stdout:
        lines.append(line)
        if word := sign_of_life(line):
            if column and column + 1 + len(word) > WIDTH:
                print()
                column = 0
            print(f"{' ' if column else '  '}{word}", end="", flush=True)
            column += len(word) + (1 if column else 2)
    if column:
        print()
    if process.wait():
        print("".join(lines), file=sys.stderr)
    return process.returncode


def sign_of_life(line: str) -> str:
    """Return the word that stands for a line of pip; "" for most lines."""
    if match := COLLECTING.match(line):
        return match[1]
    if match := INSTALLING.match(line):
        return f"… installing {match[1].count(',') + 1} packages"
    return ""


if __name__ == "__main__":
    sys.exit(main())
