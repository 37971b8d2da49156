"""The overview of what goes on."""

from __future__ import annotations


def test_the_overview_counts_everything(filled):
    dash, ids = filled
    overview = dash.get("api/overview")
    assert overview["counts"]["sessions"] == {"active": 1, "completed": 1, "aborted": 0, "damaged": 0}
    assert overview["counts"]["plans"] == {"in_progress": 1}
    assert overview["counts"]["tasks"] == {"planning": 1, "blocked": 2, "pending": 1}
    assert overview["counts"]["agents"] == {"busy": 1, "online": 2}  # the user, who was sent a message, is one
    assert overview["counts"]["work"] == {"IN_PROGRESS": 1}
    assert overview["counts"]["inbox"] == len(dash.get("api/inbox")["items"])
    assert [row["id"] for row in overview["sessions"]] == [ids["session"]]
    assert [row["id"] for row in overview["plans"]] == [ids["plan"]]
    assert [row["id"] for row in overview["work"]] == [ids["work"]]
    assert {row["id"] for row in overview["agents"]} > {ids["worker"], ids["lead"]}
    assert (overview["spent"]["verdicts"], overview["spent"]["complete"], overview["problems"]) == (3, True, [])
