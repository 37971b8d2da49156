"""The MCP conformance suite, run against our HTTP stack with the suite's fixture registered on our server."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.external, pytest.mark.timeout(600)]

FIXTURE = Path(__file__).parent / "data" / "conformance_server.py"
NOT_SERVED = {"resources-subscribe", "resources-unsubscribe"}


@pytest.fixture
async def url(on_path, run, until, project):
    """Where the fixture is served."""
    program = await run(sys.executable, FIXTURE, project.root)
    await until(lambda: "listening on" in program.stderr or program.has_ended)
    listening = re.search(r"http://\S+", program.stderr)
    assert listening, program.stderr
    return listening[0]


def scored(report):
    """Which scenarios count, and whether they passed: at least one check, and none failed."""
    summary, _, unscored = report.partition("=== SUMMARY ===")[2].partition("Not scored for")
    uncounted = set(re.findall(r"^  [✓✗] (\S+) \(", unscored, re.MULTILINE))
    results = re.findall(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", summary, re.MULTILINE)
    return {name: passed != "0" and failed == "0" for name, passed, failed in results if name not in uncounted}


@pytest.mark.parametrize(("revision", "count", "failing"), [("2026-07-28", 37, set()), ("2025-11-25", 30, NOT_SERVED)])
async def test_every_scenario_that_a_revision_requires_passes(run, url, tmp_path, revision, count, failing):
    suite = ["conformance", "server", "--url", url, "--requirements", revision, "--timeout", "8000"]
    program = await run(*suite, "-o", tmp_path / "results")
    await program.end()
    outcomes = scored(program.stdout)
    assert len(outcomes) == count, program.stdout
    assert {name for name, passed in outcomes.items() if not passed} == failing, program.stdout
