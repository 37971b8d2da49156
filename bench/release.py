"""An earlier release: measured beside the others where the registry has it, and what the last one measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from bench.contestants import Contestant

LAST = Path(__file__).with_name("last_release.json")


def earlier(version: str, folder: Path) -> list[Contestant]:
    """Install a release into an environment of its own; nothing, and the reason on stderr, if that fails."""
    environment = folder / f"release-{version}"
    python = environment / "bin" / "python"
    click.echo(f"installing deepwork {version} to compare with", err=True)
    install = [str(python), "-m", "pip", "install", "--quiet", f"deepwork=={version}"]
    try:
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, capture_output=True, text=True)
        subprocess.run(install, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        reason = next(reversed((error.stderr or "").strip().splitlines()), f"exit code {error.returncode}")
        click.echo(f"deepwork {version} is not measured: it cannot be installed ({reason}).", err=True)
        return []
    return [Contestant(version, f"{environment}/bin/deepwork serve --path {{project}}")]


def last_release() -> dict[str, Any]:
    """Return the name of the last release, and what each figure and contestant had, by `key contestant`."""
    return dict(json.loads(LAST.read_text()))


def keep_as_release(name: str, measurements: dict[str, Any]) -> None:
    """Keep the ratios of a run as a release's, for later runs to compare with."""
    compared = {f"{row['key']} {row['contestant']}": row["compared"]["median"] for row in measurements["figures"]}
    LAST.write_text(json.dumps({"release": name, "compared": compared}, indent=2) + "\n")
