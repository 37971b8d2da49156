"""What Claude Code prints: one JSON document on stdout, also for errors."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from deepwork.api import NeedsWork, Passed, Usage, read_verdict
from deepwork.errors import BadVerdict, RunnerError, RunnerLimited, RunnerUnavailable
from deepwork.programs.processes import Completed
from deepwork.programs.resets import reset_time
from deepwork.text import one_line

MAX_QUOTED = 500

# Only the user can fix these. Calling again would fail in the same way.
FOR_THE_USER = (
    (
        re.compile(r"credit balance|insufficient (credit|funds|quota)|billing|payment", re.IGNORECASE),
        "has no credit left",
        "The user has to add credit to the account, or set the ANTHROPIC_API_KEY of another one for the server.",
    ),
    (
        re.compile(r"does not have access|permission_error|(organization|account) has been disabled", re.IGNORECASE),
        "has no access",
        "The user has to ask the account's administrator, or log in with another one: run `claude` once.",
    ),
    (
        re.compile(
            r"(invalid|expired|revoked|disabled)[^.]{0,20}\b(api[ -]key|token)|"
            r"\b(api[ -]key|token)\b[^.]{0,30}(invalid|expired|revoked|disabled)|authentication_error",
            re.IGNORECASE,
        ),
        "was refused by Anthropic: the key or login is no longer valid",
        "The user has to log in again: run `claude` once, or set a valid ANTHROPIC_API_KEY for the server.",
    ),
    (
        re.compile(r"/login\b|\blog(ged)? in\b", re.IGNORECASE),
        "is not logged in",
        "The user has to log in: run `claude` once, or set ANTHROPIC_API_KEY for the server.",
    ),
)

# It may be asked again after a time, which the text mostly names.
_LIMITED = re.compile(
    r"hit your [\w -]*limit|limit reached|out of extra usage|rate_limit_error|rejected \(429\)|error: 429",
    re.IGNORECASE,
)
LIMITS = {
    "error_max_turns": "Raise plugins.settings.claude_runner.max_turns.",
    "error_max_budget_usd": "Raise plugins.settings.claude_runner.max_budget_usd.",
}


def verdict(completed: Completed) -> Passed | NeedsWork:
    """Read the verdict.

    Raises:
        RunnerError: The output holds no verdict; the error says why.
    """
    result = _result(completed)
    if result.get("is_error") or completed.returncode:
        raise _refusal(result, completed)
    if "structured_output" not in result:
        raise BadVerdict(f"Claude gave no structured answer, but said: {_quoted(result.get('result'))}")
    return read_verdict(result["structured_output"], _usage(result))


def _result(completed: Completed) -> dict[str, Any]:
    """Find the result: the document itself, or the last message of that type where it is a list."""
    try:
        document = json.loads(completed.stdout.decode())
    except (ValueError, RecursionError):
        if completed.returncode:
            raise _failure(completed) from None
        raise BadVerdict(f"Claude printed no JSON: {_quoted(completed.stdout)}") from None
    messages = document if isinstance(document, list) else [document]
    objects = [message for message in messages if isinstance(message, dict)]
    results = [message for message in objects if message.get("type", "result") == "result"]
    if results:
        return results[-1]
    if completed.returncode:
        raise _failure(completed)
    raise BadVerdict(f"Claude's answer holds no result: {_quoted(completed.stdout)}")


def _refusal(result: dict[str, Any], completed: Completed) -> RunnerError:
    errors = result.get("errors")
    reason = "; ".join(map(str, errors)) if isinstance(errors, list) and errors else result.get("result")
    if not reason:
        return _failure(completed)
    text = _quoted(reason)
    for pattern, state, cure in FOR_THE_USER:
        if pattern.search(text):
            return RunnerUnavailable(f"Claude {state}: {text}", hint=cure)
    if _LIMITED.search(text):
        return RunnerLimited(text, until=reset_time(text, datetime.now(UTC)))
    return RunnerError(f"Claude gave up: {text}", hint=LIMITS.get(str(result.get("subtype"))))


def _failure(completed: Completed) -> RunnerError:
    return RunnerError(f"Claude {completed.ending}: {_quoted(completed.stderr or completed.stdout)}")


def _usage(result: dict[str, Any]) -> Usage:
    counts, models = _mapping(result.get("usage")), _mapping(result.get("modelUsage"))
    cost = result.get("total_cost_usd")
    # `input_tokens` leaves out what the model reads from its cache or writes there.
    inputs = [counts.get(name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    output = counts.get("output_tokens")
    return Usage(
        model=", ".join(map(str, models)) or None,
        input_tokens=sum(count for count in inputs if isinstance(count, int)) if counts else None,
        output_tokens=output if isinstance(output, int) else None,
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _quoted(value: Any) -> str:
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value or "")
    return one_line(text.strip() or "nothing", MAX_QUOTED)
