"""Writes to stdout in every way there is: at import, in its hooks and in its tool."""

import os
import subprocess
import sys

from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec


def make_noise(where):
    print(f"print at {where}")  # noqa: T201 - that is what it is for
    sys.stdout.flush()
    os.write(1, f"write at {where}\n".encode())
    subprocess.run(["echo", f"echo at {where}"], check=True)


make_noise("import")


@hookimpl
def deepwork_tool_sets(context):
    make_noise("hook")
    yield ToolSet("noisy", [ToolSpec("shout", shout, title="Shout", output="text")])


def shout() -> str:
    """Shout."""
    make_noise("tool")
    return "done"
