"""`python -m deepwork`, and the script `deepwork`: both begin here, where nothing but built-in modules was imported."""

import os
import sys


def run() -> None:
    """Run the command, once nothing can be imported from the folder in which it was started, or from a project.

    Python puts the current folder in front of `sys.path` for `python -m`, and for an empty entry of PYTHONPATH. A
    repository there could bring a `click.py`.
    """
    if __name__ == "__main__" and not sys.flags.safe_path:
        del sys.path[0]  # what `-m` has put there
    entries = [(entry, os.path.realpath(entry)) for entry in sys.path]
    here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    paths = [path for _, path in entries]
    current, prefix = os.path.realpath(os.curdir), os.path.realpath(sys.prefix) + os.sep
    for entry, path in entries[: paths.index(here)] if here in paths else entries:
        if (not os.path.isabs(entry) or path == current) and not f"{path}{os.sep}".startswith(prefix):
            sys.stderr.write(
                f"Error: Python would import modules from the current folder: {entry!r} is on sys.path.\n"
                "Hint: Take it out of PYTHONPATH, and start `deepwork` or `python -P -m deepwork`.\n"
            )
            sys.exit(1)
    from deepwork.cli.main import run as run_command

    run_command()


if __name__ == "__main__":
    run()
