"""The buttons of a run: who works is seen, another agent goes on, and it is stopped; agents are played by programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from deepwork.testing import DeepworkProject, step

pytestmark = pytest.mark.slow

FAKE = Path(__file__).parents[3] / "deepwork_run" / "tests" / "fake_cli.py"


@pytest.fixture
def limited(tmp_path, monkeypatch):
    """A project with a session whose agent, Claude, has come to a limit; Codex would work for ever."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
        (programs / name).chmod(0o755)
    limit = {"steps": 1, "then": "limit", "for": 3600, "cost": 0.42}
    (programs / "plan.json").write_text(json.dumps({"claude": [limit], "codex": [{"steps": 0, "then": "hang"}]}))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    project = DeepworkProject(tmp_path / "project")
    project.write_job(steps=[step("a"), step("b")])
    command = [sys.executable, "-m", "deepwork", "run", "demo", "--goal", "Release notes", "--with", "claude"]
    subprocess.run([*command, "--no-wait", "--path", str(project.root)], check=False, timeout=120)
    return project


def test_a_person_sees_who_works_has_another_agent_go_on_and_stops_it(limited, serve, page):
    dashboard = serve(limited.root)
    dashboard.enter(page, "#/sessions")
    row = page.get_by_role("listitem").filter(has_text="Release notes")
    row.get_by_text("usage limit of claude").wait_for()
    row.get_by_role("link", name="Release notes").click()
    panel = page.get_by_role("region", name="Run")
    panel.get_by_text("Waits until").wait_for()
    panel.get_by_text("claude: started 1 time, 100 tokens read, 10 written, $0.42").wait_for()
    panel.get_by_role("button", name="Continue with codex").click()
    panel.get_by_text("codex works on it since").wait_for()
    assert panel.get_by_role("button").all_inner_texts() == ["Stop", "Continue with claude"]
    page.get_by_role("link", name="Sessions", exact=True).first.click()
    row.get_by_text("codex works since").wait_for()
    row.get_by_role("link", name="Release notes").click()
    panel.get_by_role("button", name="Stop").click()
    panel.get_by_text("Waits until").wait_for()
    expect(panel.get_by_role("button", name="Stop")).to_have_count(0)
