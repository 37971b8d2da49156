"""Writes `requirements.lock`: the newest releases that the declarations here allow, with their hashes; `make lock`.

They are those of the core and of every plugin with all extras, and of the group `dev`, for every Python and system that
`requires-python` and the classifiers name. The file has no addresses, so every index and mirror serves it, and both pip
and uv read it; `uv.lock` would name the host of each file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from install import project_folders, project_table

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"


def main() -> int:
    """Write the file, and return uv's exit code."""
    projects = {folder: project_table(folder) for folder in project_folders(ROOT)}
    ours = {project["name"] for project in projects.values()}
    requirements = "\n".join(f"-e {requirement(folder, project, ours)}" for folder, project in projects.items())
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", "--quiet", "--universal", "--generate-hashes"]
    command += ["--group", "dev", "--upgrade", "--no-annotate", "--custom-compile-command", "make lock"]
    command += [word for name in sorted(ours) for word in ("--no-emit-package", name)]
    return subprocess.run([*command, "--output-file", str(LOCK)], cwd=ROOT, input=requirements, text=True).returncode


def requirement(folder: Path, project: dict[str, Any], ours: set[str]) -> str:
    """Return a project with those of its extras that bring packages of others."""
    extras = [
        extra
        for extra, needs in project.get("optional-dependencies", {}).items()
        if {re.match(r"[\w-]+", need)[0] for need in needs} - ours  # type: ignore[index]  # each begins with a name
    ]
    return f"./{folder.relative_to(ROOT)}[{','.join(sorted(extras))}]"


if __name__ == "__main__":
    sys.exit(main())
