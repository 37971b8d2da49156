"""What waits for a person, over HTTP."""

from __future__ import annotations


def test_a_program_with_a_token_reads_what_waits_and_answers_none_of_it(filled):
    """Also the token of a person is a program's when a program sends it."""
    dash, _ = filled
    items = dash.get("api/inbox")["items"]
    assert {item["kind"] for item in items} == {"failed-gate", "human-task", "message", "blocker"}
    for item in items:
        for action in item["actions"]:
            body = {"id": item["id"], "action": action["name"], "text": "I allow it", "state": item["state"]}
            answer = dash.ask("api/inbox/answer", "POST", body=body, Origin=dash.origin)
            assert (item["kind"], action["name"], answer.status) == (item["kind"], action["name"], 403)
            error = answer.json()["error"]
            assert "nothing was changed" in error["message"]
            assert "`deepwork inbox`" in error["hint"]
    assert dash.get("api/inbox")["items"] == items


def test_the_inbox_says_what_waits_and_what_can_be_done(filled):
    dash, ids = filled
    items = dash.get("api/inbox")["items"]
    gate = next(item for item in items if item["kind"] == "failed-gate")
    assert gate["thing"] == f"session:{ids['session']}"
    assert "no <b>source</b> named" in gate["text"]
    assert (gate["files"], gate["criteria"]) == (["write.md"], ["Good: Is it good?"])
    assert all("files" not in item and "criteria" not in item for item in items if item is not gate)
    actions = [(action["name"], action["suggested"]) for action in gate["actions"]]
    assert actions == [("override", False), ("retry", True), ("abort", False)]
    assert gate["command"] == f"deepwork inbox answer {gate['id']} retry"
    assert {item["thing"] for item in items} >= {f"task:{ids['tasks']['ask']}", f"work:{ids['work']}"}
    assert [item["id"] for item in dash.get("api/inbox?kind=failed-gate")["items"]] == [gate["id"]]
