"""What the tools and replies of the core cost an agent's context."""

from __future__ import annotations

import json


def test_the_tools_and_replies_keep_within_their_tokens(command, tmp_path):
    file = tmp_path / "tokens.json"
    ran = command("--figures", "tokens", "--json", file)
    assert ran.code == 0, ran.stderr
    figures = json.loads(file.read_text())["figures"]
    assert {figure["key"] for figure in figures} == {"tokens.list", "tokens.tools", "tokens.replies", "tokens.empty"}
    assert [figure for figure in figures if not figure["reached"]] == []
