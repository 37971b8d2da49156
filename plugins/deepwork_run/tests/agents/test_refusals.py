"""What the words of a program that refuses mean for its run."""

from __future__ import annotations

import pytest

from deepwork.ports.agent import LimitCause, Limited
from deepwork_run.agents.codex import WORDS as CODEX_WORDS
from deepwork_run.agents.refusals import refusal


@pytest.mark.parametrize(
    "text",
    [
        "unexpected status 529 <unknown status code>: no, url: http://127.0.0.1:1/v1/responses",
        "unexpected status 503 Service Unavailable: no",
        "exceeded retry limit, last status: 502 Bad Gateway",
    ],
)
def test_a_server_of_codex_that_fails_is_waited_for(text):
    """Another start at once would be one more call to a server that cannot answer."""
    assert refusal(text, CODEX_WORDS) == Limited(None, LimitCause.OVERLOAD, text)
