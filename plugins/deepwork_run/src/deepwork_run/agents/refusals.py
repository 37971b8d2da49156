"""What a refusal means, by the words of a program. Samples with their versions are in `tests/samples`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from deepwork.ports.agent import Failed, FailureKind, LimitCause, Limited
from deepwork.programs.resets import reset_time
from deepwork.text import one_line

MAX_QUOTED = 500


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a program says in each case, as regular expressions that heed no case."""

    context: str
    usage: str
    login: str
    network: str
    overload: str


def refusal(text: str, words: Words, until: datetime | None = None) -> Limited | Failed:
    """Tell a limit from a failure. Unknown errors are failures: a limit that never ends must not be waited for.

    Args:
        text: The program's own words on its error; never its model's.
        words: Those of the program.
        until: When the limit ends, if the program has said so otherwise.
    """
    text = one_line(text, MAX_QUOTED)

    def has(pattern: str) -> bool:
        return re.search(pattern, text, re.IGNORECASE) is not None

    if has(words.context):
        return Failed(text, FailureKind.CONTEXT)
    if has(words.usage):
        return Limited(until or reset_time(text, datetime.now(UTC)), LimitCause.USAGE, text)
    if has(words.login):
        return Failed(text, FailureKind.LOGIN)
    if has(words.network):
        return Limited(None, LimitCause.NETWORK, text)
    if has(words.overload):
        return Limited(None, LimitCause.OVERLOAD, text)
    return Failed(text)
