from __future__ import annotations

from pathlib import Path

from deepwork.api import Level

from deepwork_acme.checks import check


def test_a_project_that_is_not_prepared_is_named_with_the_cure(tmp_path: Path) -> None:
    [finding] = check(tmp_path)
    assert (finding.level, finding.cure) == (Level.INFO, "deepwork init")


def test_a_prepared_project_is_fine(tmp_path: Path) -> None:
    (tmp_path / ".deepwork").mkdir()
    [finding] = check(tmp_path)
    assert finding.level is Level.OK
