"""The event log, over HTTP."""

from __future__ import annotations


def test_the_event_log_has_what_happened_anywhere_once_and_newest_first(filled):
    dash, made = filled
    seen, cursor = [], ""
    while cursor is not None:
        page = dash.get(f"api/events?limit=7&cursor={cursor}")
        seen += page["items"]
        cursor = page["next"]
    assert len({item["id"] for item in seen}) == len(seen)
    assert {item["source"] for item in seen} == {"core", "orchestration", "tracking"}
    times = [item["at"] for item in seen]
    assert times == sorted(times, reverse=True)
    history = dash.get(f"api/sessions/{made['session']}/history?limit=500")["items"]
    of_session = dash.get(f"api/events?about=session:{made['session']}&limit=500")["items"]
    assert [item["event"] for item in of_session] == [f"session:{entry['kind']}" for entry in history]
    claimed = dash.get("api/events?source=orchestration&event=task:claimed")["items"]
    assert [item["thing"] for item in claimed] == [f"task:{made['tasks']['schema']}"]
    assert dash.get("api/events?q=no+such+words")["items"] == []
