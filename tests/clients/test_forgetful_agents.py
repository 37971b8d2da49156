"""The real Claude Code, set up as the README says, with a model that forgets its step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from figures_hooks import START, Desk, rows

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]


def test_it_reaches_the_first_call_and_is_reminded_once_and_another_window_is_not(node_clients):
    assert [(row.figure, row.measured) for row in rows(1) if not row.reached] == []


def test_a_project_that_nobody_has_approved_is_asked_for_once(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    (tmp_path / "home/.claude/settings.json").unlink()
    assert "Pending approval" in desk.run("claude", "mcp", "list")
    assert START["id"] not in desk.agent(START).results or desk.agent(START).results[START["id"]].get("is_error")
