"""What has happened, in words."""

from __future__ import annotations

import re
from pathlib import Path

from deepwork.api import history as history_models
from deepwork_dashboard.event_words import WORDS

DOCS = Path(__file__).parents[3] / "docs/reference"


def test_an_event_says_in_words_what_has_happened_and_by_whom(filled):
    dash, ids = filled

    def newest(query):
        event = dash.get(f"api/events?limit=1&{query}")["items"][0]
        return event["what"], event["title"], event["by"]

    worker = {"name": "Worker", "thing": f"agent:{ids['worker']}"}
    assert newest(f"event=session:verdict&about=session:{ids['session']}") == (
        "Review failed",
        "write",
        {"name": "local", "thing": None},
    )
    assert newest("event=session:attempt")[0] == "Attempt 3 reported"
    assert newest("event=task:updated&source=orchestration") == ("Task being planned", "schema", worker)
    assert newest("event=task:claimed") == ("Task claimed", "schema", worker)
    assert newest("event=task:updated&source=tracking") == ("Task succeeded", "draw", {"name": "ann", "thing": None})
    assert newest("q=review+failed")[0] == "Review failed"
    assert newest("q=claimed+worker")[0] == "Task claimed"
    entry = dash.get(f"api/sessions/{ids['session']}/history?kind=step_completed")["items"][0]
    assert (entry["what"], entry["by"]) == ("Step completed", None)


def test_every_event_that_the_reference_lists_has_its_words():
    """And every kind of entry in a history."""
    listed = {("core", f"session:{kind}") for kind in history_models.EventKind}
    for source in ("orchestration", "tracking"):
        rows = re.findall(r"^\| (`\w+:\w+`(?:, `\w+:\w+`)*) \|", (DOCS / f"{source}.md").read_text(), re.MULTILINE)
        listed |= {(source, event) for row in rows for event in re.findall(r"\w+:\w+", row)}
    assert {(source, event) for source, events in WORDS.items() for event in events} == listed
