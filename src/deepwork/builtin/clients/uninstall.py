"""`deepwork uninstall`: our entries and hooks out of every file of a client, in all projects."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import click

from deepwork.builtin.clients.backups import Record
from deepwork.builtin.clients.claude_plugin import installed_entries
from deepwork.builtin.clients.connect import remove_file
from deepwork.builtin.clients.removal import recorded_files, unwound
from deepwork.builtin.clients.table import NAME
from deepwork.commands.terminal import say, say_error
from deepwork.errors import ConfigError, DeepWorkError
from deepwork.paths.user_folders import user_state_dir


@click.command(
    epilog="Then remove deepwork itself: `make uninstall` in the checkout, which runs this, too, or "
    "`uv tool uninstall deepwork`, or `pipx uninstall deepwork`."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--data",
    is_flag=True,
    help="Also remove your data of all projects: backups, approvals, client sessions, databases.",
)
def uninstall(dry_run: bool, data: bool) -> None:
    """Take deepwork out of every file that connect has written, in all projects, and bring back what stood there.

    Nothing is asked. Your data in the state folder are listed, and removed only with --data. The folder .deepwork of a
    project stays: it is the project's.
    """
    failed = [record.path for record in recorded_files(os.environ) if not _taken_out(record, dry_run=dry_run)]
    if installed_entries(os.environ):
        say(f"Claude Code has the plugin, too; remove it with: claude plugin uninstall {NAME}@{NAME}", err=True)
    folder = user_state_dir(os.environ)
    size = _list_data(folder)
    if failed:
        kept = "; your data were kept, for the backups of these files are among them" if data else ""
        raise ConfigError(f"not taken out of {', '.join(failed)}{kept}", hint="Mend these files, and run it again.")
    if folder.exists() and not dry_run and (data or not size):
        _remove(folder)
    elif size and not data:
        # Not a command of ours, which may be gone by then: `make uninstall` removes it next.
        say(f"Your data stay; remove them with: rm -r {shlex.quote(str(folder))}", err=True)


def _taken_out(record: Record, *, dry_run: bool) -> bool:
    """Take everything of ours out of one file, and forget it if it is gone; False if that cannot be done."""
    file = Path(record.path)
    try:
        for place, change in unwound(file, os.environ, dry_run=dry_run):
            remove_file(replace(change, name=str(file)), place, dry_run=dry_run)
    except DeepWorkError as error:
        say_error(error)
        return False
    return True


def _list_data(folder: Path) -> int:
    """Print what the state folder holds, and return its bytes."""
    parts = {path.name: _size(path) for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    total = sum(parts.values())
    say(f"data       {folder}: {total:,} bytes")
    for name, size in parts.items():
        say(f"           {size:>13,}  {name}")
    return total


def _size(path: Path) -> int:
    files = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    return sum(file.lstat().st_size for file in files if not file.is_dir())


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder} cannot be removed: {error.strerror or error}") from None
    say(f"removed    {folder}")
