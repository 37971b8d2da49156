"""What a run has counted is what the programs have printed, to the token; more: `tools/torture runs spending`."""

from __future__ import annotations

from spending import histories


def test_random_histories_of_spending_are_counted_to_the_token(capsys, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    counts = histories(9, seed=5)
    assert "NOT EQUAL" not in capsys.readouterr().err
    assert (counts["equal"], counts["stopped late"]) == (9, 0)
    assert counts["tokens"] > 100_000
