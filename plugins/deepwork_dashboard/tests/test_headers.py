"""What every answer tells the browser."""

from __future__ import annotations

import json


def test_answers_are_never_kept_and_never_taken_for_pages(filled):
    dash, ids = filled
    answer = dash.ask(f"api/sessions/{ids['session']}")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert json.loads(answer.text)["id"] == ids["session"]
