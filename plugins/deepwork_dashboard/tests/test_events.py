"""The event log, over HTTP."""

from __future__ import annotations


def test_the_event_log_has_what_happened_anywhere_once_and_newest_first(filled):
    dash, ids = filled
    items, cursor = [], ""
    while cursor is not None:
        page = dash.get(f"api/events?limit=7&cursor={cursor}")
        items += page["items"]
        cursor = page["next"]
    assert len({item["id"] for item in items}) == len(items)
    assert {item["source"] for item in items} == {"core", "orchestration", "tracking"}
    times = [item["at"] for item in items]
    assert times == sorted(times, reverse=True)
    history = dash.get(f"api/sessions/{ids['session']}/history?limit=500")["items"]
    of_session = dash.get(f"api/events?about=session:{ids['session']}&limit=500")["items"]
    assert [item["event"] for item in of_session] == [f"session:{entry['kind']}" for entry in history]
    claimed = dash.get("api/events?source=orchestration&event=task:claimed")["items"]
    assert [item["thing"] for item in claimed] == [f"task:{ids['tasks']['schema']}"]
    assert dash.get("api/events?q=no+such+words")["items"] == []
