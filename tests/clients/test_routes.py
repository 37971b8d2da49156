"""Ways to install, each in a home that has nothing, with the real clients: to the first refused step, and back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.external, pytest.mark.timeout(1200)]


def go(route, *programs):
    """Go a route; `tools/routes.py` ends with 1 if it fails, or if a file lies where none of ours may lie."""
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    command = [sys.executable, ROOT / "tools/routes.py", route]
    process = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"{route:13} 1 of 1" in process.stdout


@pytest.mark.parametrize("route", ["checkout", "checkout-pip", "wheels", "pipx", "uvx"])
def test_a_route_leads_to_a_refused_step_and_leaves_nothing(route):
    go(route)


@pytest.mark.parametrize("route", ["claude", "codex"])
def test_a_route_of_a_client_leads_to_a_refused_step_and_leaves_nothing(node_clients, route):
    go(route, node_clients)
