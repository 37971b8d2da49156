"""Short versions of the figures that `python tools/torture` prints, and that its tortures would notice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[2] / "tools" / "torture"

LOSES_EVERY_FIFTH_WRITE = """
import os

real, count = os.replace, 0

def replace(source, target, **folders):
    global count
    count += "session_" in str(target)
    if count % 5:
        return real(source, target, **folders)
    count += 1
    os.unlink(source, dir_fd=folders["src_dir_fd"])

os.replace = replace
"""


def torture(*arguments, **environment):
    command = [sys.executable, str(TORTURE), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=110, env={**os.environ, **environment})
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["kills", "--count", "4"], id="kills"),
        pytest.param(["contention", "--seconds", "2"], id="contention"),
        pytest.param(["duplicates", "--count", "90"], id="duplicates"),
        pytest.param(["faults", "--quick"], id="faults"),
        pytest.param(["amnesia", "--count", "4"], id="amnesia"),
    ],
)
def test_every_promise_is_kept(arguments):
    code, report = torture(*arguments)
    assert "every promise was kept" in report, report
    assert code == 0


@pytest.mark.parametrize("arguments", [["kills", "--count", "3"], ["contention", "--seconds", "2"]])
def test_a_store_that_loses_writes_is_found_out(tmp_path, arguments):
    (tmp_path / "sitecustomize.py").write_text(LOSES_EVERY_FIFTH_WRITE)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    code, report = torture(*arguments, PYTHONPATH=path)
    assert code == 1
    assert "FAILED: " in report, report


def test_the_command_lists_its_tortures():
    code, text = torture("--help")
    assert code == 0
    for name in ("kills", "contention", "duplicates", "faults", "amnesia"):
        assert name in text
