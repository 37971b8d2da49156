"""Short versions of the figures that `python tools/torture` prints, and that its tortures would notice."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Of the first change that a server stores nothing reaches the disk, so it takes one acknowledged call to find it out.
LOSES_EVERY_SECOND_WRITE = """
    import os

    real, count = os.replace, 0

    def replace(source, target, **folders):
        global count
        count += "session_" in str(target)
        if "session_" in str(target) and count % 2:
            os.unlink(source, dir_fd=folders["src_dir_fd"])
        else:
            real(source, target, **folders)

    os.replace = replace
"""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["kills", "--count", "4"], id="kills"),
        pytest.param(["contention", "--changes", "150", "--seconds", "90"], id="contention"),
        pytest.param(["duplicates", "--count", "90"], id="duplicates"),
        pytest.param(["faults", "--quick"], id="faults"),
        pytest.param(["amnesia", "--count", "4"], id="amnesia"),
    ],
)
def test_every_promise_is_kept(torture, arguments):
    code, report = torture(*arguments)
    assert "every promise was kept" in report, report
    assert code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["kills", "--count", "3"], id="kills"),
        pytest.param(["contention", "--changes", "20", "--seconds", "90"], id="contention"),
    ],
)
def test_a_store_that_loses_writes_is_found_out(torture_with, arguments):
    code, report = torture_with(LOSES_EVERY_SECOND_WRITE, *arguments)
    assert code == 1
    assert "FAILED: " in report, report


def test_the_command_lists_its_tortures(torture):
    code, text = torture("--help")
    assert code == 0
    for name in ("kills", "contention", "duplicates", "faults", "amnesia"):
        assert name in text
