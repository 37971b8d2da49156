"""What the tests of the long runs share: the command, and servers with something wrong in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[2] / "tools" / "torture"


@pytest.fixture
def torture():
    """Run a torture, and return its exit code and what it has printed."""

    def run(*arguments, **environment):
        command = [sys.executable, str(TORTURE), *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=870, env={**os.environ, **environment})
        return ended.returncode, ended.stdout + ended.stderr

    return run


@pytest.fixture
def torture_with(torture, tmp_path):
    """Run a torture whose servers execute some code at their start."""

    def run(code, *arguments):
        (tmp_path / "sitecustomize.py").write_text(f"import sys\nif 'serve' in sys.orig_argv:\n{code}")
        return torture(
            *arguments, PYTHONPATH=os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        )

    return run


@pytest.fixture
def torture_modules(monkeypatch):
    """Let a test import the modules of the tortures, which have no package."""
    before = {*sys.modules}
    monkeypatch.syspath_prepend(str(TORTURE))
    yield
    for name in {*sys.modules} - before:
        if TORTURE in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]
