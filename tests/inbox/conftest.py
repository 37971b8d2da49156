from __future__ import annotations

import json
import os
import pty
import sys

import anyio
import pytest

from deepwork.project.config import user_config_file


@pytest.fixture
def user_config():
    """Write the user's own configuration."""

    def write(text):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


@pytest.fixture
def waiting(deepwork):
    """Give what `deepwork inbox --json` lists, by kind."""

    async def read():
        contents = json.loads((await deepwork("inbox", "--json")).split("\nNote:")[0])
        assert contents["failures"] == []
        return {item["kind"]: item for item in contents["items"]}

    return read


@pytest.fixture
def at_terminal(project):
    """Run a command at a terminal of its own, as a person does, and give what it shows and its exit code."""

    async def run(*arguments, typed=b"", columns=80):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project.root)]
        primary, secondary = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns)}
        try:
            process = await anyio.open_process(
                command, stdin=secondary, stdout=secondary, stderr=secondary, env=environment
            )
            os.close(secondary)
            if typed:
                os.write(primary, typed)
            shown = await anyio.to_thread.run_sync(_read_all, primary)
            return shown.decode().replace("\r\n", "\n"), await process.wait()
        finally:
            os.close(primary)

    return run


def _read_all(descriptor):
    content = b""
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # the other side is closed
            return content
        if not chunk:
            return content
        content += chunk
