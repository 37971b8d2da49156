"""What Claude Code answers: one JSON document on stdout, errors included."""

from __future__ import annotations

import json
from typing import Any

from deepwork.api import (
    BadVerdict,
    Completed,
    NeedsWork,
    Passed,
    RunnerError,
    RunnerUnavailable,
    Usage,
    read_verdict,
)

MAX_QUOTED = 500

LIMITS = {
    "error_max_turns": "Raise plugins.settings.claude_runner.max_turns.",
    "error_max_budget_usd": "Raise plugins.settings.claude_runner.max_budget_usd.",
}


def verdict(completed: Completed) -> Passed | NeedsWork:
    """Make a verdict of it.

    Raises:
        RunnerError: There is none; the error says why.
    """
    reply = _reply(completed)
    if reply.get("is_error") or completed.returncode:
        raise _refusal(reply, completed)
    if "structured_output" not in reply:
        raise BadVerdict(f"Claude gave no structured answer, but said: {_quoted(reply.get('result'))}")
    return read_verdict(reply["structured_output"], _usage(reply))


def _reply(completed: Completed) -> dict[str, Any]:
    """Find the result: the document itself, or the last one of that type in a list of messages."""
    try:
        document = json.loads(completed.stdout.decode())
    except (ValueError, RecursionError):
        if completed.returncode:
            raise _died(completed) from None
        raise BadVerdict(f"Claude printed no JSON: {_quoted(completed.stdout)}") from None
    messages = document if isinstance(document, list) else [document]
    results = [one for one in messages if isinstance(one, dict) and one.get("type", "result") == "result"]
    if results:
        return results[-1]
    if completed.returncode:
        raise _died(completed)
    raise BadVerdict(f"Claude's answer holds no result: {_quoted(completed.stdout)}")


def _refusal(reply: dict[str, Any], completed: Completed) -> RunnerError:
    errors = reply.get("errors")
    told = "; ".join(map(str, errors)) if isinstance(errors, list) and errors else reply.get("result")
    if not told:
        return _died(completed)
    text = _quoted(told)
    if "log" in text.lower() and "in" in text.lower().split():
        cure = "The user has to log in: run `claude` once, or set ANTHROPIC_API_KEY for the server."
        return RunnerUnavailable(f"Claude is not logged in: {text}", hint=cure)
    return RunnerError(f"Claude gave up: {text}", hint=LIMITS.get(str(reply.get("subtype"))))


def _died(completed: Completed) -> RunnerError:
    code = completed.returncode
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return RunnerError(f"Claude {how}: {_quoted(completed.stderr or completed.stdout)}")


def _usage(reply: dict[str, Any]) -> Usage:
    counts, models = _mapping(reply.get("usage")), _mapping(reply.get("modelUsage"))
    cost = reply.get("total_cost_usd")
    # What was read from a cache was read, too.
    read = [counts.get(name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    written = counts.get("output_tokens")
    return Usage(
        model=", ".join(map(str, models)) or None,
        input_tokens=sum(count for count in read if isinstance(count, int)) if counts else None,
        output_tokens=written if isinstance(written, int) else None,
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _quoted(text: Any) -> str:
    shown = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text or "nothing")
    shown = shown.strip() or "nothing"
    return shown if len(shown) <= MAX_QUOTED else f"{shown[: MAX_QUOTED - 1]}…"
