"""Runs tests while every processor is busy with something else: `python tools/under_load.py --help`.

A test that counts on speed fails here. Without paths it takes the test files that send signals or end processes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

ROOT = Path(__file__).parent.parent
BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
PROCESSES = re.compile(r"signal\.SIG|os\.kill|killpg|\.terminate\(|\.kill\(|send_signal")


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True))
@click.option("--rounds", default=5, show_default=True, help="How often the tests run.")
@click.option("--load", default=8, show_default=True, help="How many processes are busy meanwhile.")
def main(paths: tuple[str, ...], rounds: int, load: int) -> None:
    """Run the tests in these files and folders under load; exit 1 if one has failed."""
    chosen = list(paths) or sorted(files_that_watch_processes())
    with busy(load):
        failed = [number for number in range(1, rounds + 1) if not passes(number, rounds, chosen)]
    if failed:
        raise click.ClickException(f"tests failed in {len(failed)} of {rounds} rounds")
    click.echo(f"{len(chosen)} files and folders passed in {rounds} of {rounds} rounds, beside {load} busy processes")


def files_that_watch_processes() -> Iterator[str]:
    """Find the test files that send signals or end processes."""
    for folder in (ROOT / "tests", *ROOT.glob("plugins/*/tests")):
        for file in folder.rglob("test_*.py"):
            if PROCESSES.search(file.read_text()):
                yield str(file.relative_to(ROOT))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep processors busy, until this process ends at the latest."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def passes(number: int, rounds: int, paths: list[str]) -> bool:
    """Run the tests once."""
    click.echo(f"Round {number} of {rounds}")
    selection = ["-m", "not slow and not external"]
    return not subprocess.run([sys.executable, "-m", "pytest", "-q", *selection, *paths], cwd=ROOT).returncode


if __name__ == "__main__":
    main()
