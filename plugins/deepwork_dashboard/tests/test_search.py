"""One search for everything that has a name."""

from __future__ import annotations


def test_one_search_finds_sessions_plans_tasks_agents_and_work(filled):
    dash, made = filled
    for words, thing in (
        ("goal+report", f"session:{made['session']}"),
        ("migr", f"plan:{made['plan']}"),
        ("SCHEMA", f"task:{made['tasks']['schema']}"),
        ("worker", f"agent:{made['worker']}"),
        ("login", f"work:{made['work']}"),
    ):
        assert thing in [item["thing"] for item in dash.get(f"api/search?q={words}")["items"]], words
    assert dash.get("api/search")["items"] == []
