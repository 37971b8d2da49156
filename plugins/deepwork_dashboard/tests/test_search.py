"""One search for everything that has a name."""

from __future__ import annotations


def test_one_search_finds_sessions_plans_tasks_agents_and_work(filled):
    dash, ids = filled
    for words, thing in (
        ("goal+report", f"session:{ids['session']}"),
        ("migr", f"plan:{ids['plan']}"),
        ("SCHEMA", f"task:{ids['tasks']['schema']}"),
        ("worker", f"agent:{ids['worker']}"),
        ("login", f"work:{ids['work']}"),
    ):
        assert thing in [item["thing"] for item in dash.get(f"api/search?q={words}")["items"]], words
    assert dash.get("api/search")["items"] == []
