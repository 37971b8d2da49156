"""Short versions of the long runs of `python tools/torture`, and what they would notice."""

import re
import shutil
from pathlib import Path

import pytest

import deepwork

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CANNOT = re.compile(r"SKIPPED: (?!p99)(.+)")

SOAK = ("soak", "--calls", "400")
STOPS = ("stops", "--count", "4", "--within", "20")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["power", "--count", "2"], id="power"),
        pytest.param(
            ["contention", "--servers", "2", "--changes", "150", "--seconds", "90", "--transport", "mixed"],
            id="contention",
        ),
        pytest.param(["stops", "--count", "8", "--within", "20"], id="stops"),
        pytest.param([*SOAK], id="soak on stdio"),
        pytest.param([*SOAK, "--transport", "http"], id="soak on HTTP"),
        pytest.param(["clock", "--injected"], id="clock"),
        pytest.param(
            ["reviews", "--count", "3", "--comments", "100", "--kills", "4", "--races", "5"],
            id="reviews",
        ),
        pytest.param(["notifications", "--count", "6", "--within", "30"], id="notifications"),
        pytest.param(["runs", "spending", "--count", "3"], id="spending of runs"),
    ],
)
def test_every_promise_is_kept(torture, arguments):
    code, report = torture(*arguments)
    if cannot := CANNOT.search(report):
        pytest.skip(cannot[1])
    assert "every promise was kept" in report, report
    assert code == 0


def test_every_text_for_an_agent_is_handed_over(torture):
    pytest.importorskip("deepwork_orchestration")
    code, report = torture("deliveries", "--count", "30", "--kills", "4", DEEPWORK_NO_PLUGINS="")
    assert "every promise was kept" in report, report
    assert code == 0


@pytest.mark.parametrize("bug", ["in_process_lock", "no_sync", "no_recorded_replies", "stack_in_memory"])
def test_a_planted_bug_is_found_out_and_the_honest_build_is_not_accused(torture, bug):
    code, report = torture("planted", "--bug", bug)
    if cannot := CANNOT.search(report):
        pytest.skip(cannot[1])
    assert "every promise was kept" in report, report
    assert code == 0


LEAVES_A_FILE = """
    import tempfile
    tempfile.mkstemp()
"""

LEAVES_A_PROCESS = """
    import os, subprocess
    subprocess.Popen(["sleep", "20"], cwd=sys.orig_argv[sys.orig_argv.index("--path") + 1], start_new_session=True)
"""

ENDS_WITH_ANOTHER_CODE = """
    import atexit, os
    atexit.register(os._exit, 7)
"""

LEAKS = """
    import os
    real, kept = os.replace, []

    def replace(*arguments, **options):
        kept.append((bytearray(os.urandom(1)) * 200_000, open(os.devnull)))
        return real(*arguments, **options)

    os.replace = replace
"""


@pytest.mark.parametrize(
    ("code", "arguments", "broken"),
    [
        pytest.param(LEAVES_A_FILE, STOPS, "processes and temporary files left behind", id="a file"),
        pytest.param(LEAVES_A_PROCESS, STOPS, "processes and temporary files left behind", id="a process"),
        pytest.param(ENDS_WITH_ANOTHER_CODE, STOPS, "wrong exit codes", id="another code"),
        pytest.param(LEAKS, SOAK, "KiB grown beyond 20 MiB, descriptors more than before", id="leaks"),
    ],
)
def test_what_is_wrong_with_a_server_is_noticed(torture_with, code, arguments, broken):
    exit_code, report = torture_with(code, *arguments)
    assert exit_code == 1
    assert broken in report.partition("FAILED: ")[2], report


SORTS_HISTORIES_BY_TIME = """
_record = record

def record(*arguments, **more):
    session = _record(*arguments, **more)
    return session.model_copy(update={"history": sorted(session.history, key=lambda event: event.at)})
"""


def test_a_server_that_believes_its_clock_is_noticed(torture, tmp_path):
    source = tmp_path / "deepwork"
    shutil.copytree(Path(deepwork.__file__).parent, source)
    with (source / "sessions" / "transitions.py").open("a") as file:
        file.write(SORTS_HISTORIES_BY_TIME)
    code, report = torture("clock", "--injected", PYTHONPATH=str(tmp_path))
    assert code == 1
    assert "FAILED: histories that differ" in report, report


def test_the_command_lists_its_long_runs(torture):
    code, text = torture("--help")
    assert code == 0
    for name in ("power", "contention", "stops", "soak", "clock", "planted", "runs"):
        assert name in text
