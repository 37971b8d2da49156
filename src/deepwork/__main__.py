"""`python -m deepwork`."""

from __future__ import annotations

from deepwork.cli.main import run

run()
