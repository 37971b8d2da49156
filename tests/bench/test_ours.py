"""What the tools and replies of the core cost an agent's context."""

from __future__ import annotations

import json

import pytest


def test_the_tools_and_replies_keep_within_their_tokens(command, tmp_path):
    file = tmp_path / "tokens.json"
    ran = command("--figures", "tokens", "--json", file)
    assert ran.code == 0, ran.stderr
    figures = json.loads(file.read_text())["figures"]
    assert {figure["key"] for figure in figures} == {"tokens.list", "tokens.tools", "tokens.replies", "tokens.empty"}
    assert [figure for figure in figures if not figure["reached"]] == []


@pytest.mark.slow
def test_authors_of_jobs_have_their_figures(command, tmp_path):
    file = tmp_path / "authoring.json"
    ran = command("--figures", "authoring", "--quick", "--rounds", 1, "--json", file)
    assert ran.code == 0, ran.stderr
    figures = {figure["key"]: figure for figure in json.loads(file.read_text())["figures"]}
    assert {*figures} == {f"authoring.{name}" for name in ("check", "test", "keys.600", "keys.5000", "memory")}
    assert figures["authoring.memory"]["reached"]


@pytest.mark.slow
def test_claims_beside_the_same_statements_have_their_figures(command, tmp_path):
    """The command fails unless each item was done once, on either side."""
    file = tmp_path / "claims.json"
    ran = command("--figures", "claims", "--quick", "--rounds", 1, "--json", file)
    assert ran.code == 0, ran.stderr
    figures = json.loads(file.read_text())["figures"]
    assert {figure["key"] for figure in figures} == {"claims", "claims.cpu"}
    assert "SQLite" in {figure["contestant"] for figure in figures}
