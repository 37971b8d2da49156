"""Claude Code, headless: `claude -p`, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deepwork.api import AgentEvent, AgentTask, Called, Failed, Limited, PluginContext, Said, Spent
from deepwork.ports.agent import FailureKind, LimitCause
from deepwork.programs.resets import reset_time
from deepwork.text import one_line
from deepwork_run.agents.program import (
    SERVER_SECONDS,
    ProgramAgent,
    Stream,
    count,
    hooks_of,
    mapping,
    mappings,
    private_file,
)
from deepwork_run.agents.refusals import MAX_QUOTED, Words, refusal
from deepwork_run.settings import RunSettings

HOOKS = ("SessionStart", "PreCompact", "PostToolUse", "Stop")

TOOLS = ("Read", "Edit", "Write", "Glob", "Grep")
MORE_TOOLS = {"shell": ("Bash",), "network": ("WebFetch", "WebSearch")}

# Texts of 1.0.83 to 2.1.327.
WORDS = Words(
    context=r"prompt is too long|context (limit|window)",
    usage=r"hit your [\w -]*limit|limit reached|out of extra usage|rejected \(429\)|error: 429",
    login=r"/login\b|not logged in|invalid (api key|bearer token)|credit balance|token has expired",
    network=r"connection (error|refused|reset|failed)|ECONN|ENOTFOUND|ETIMEDOUT|timed out|fetch failed",
    overload=r"overloaded|error: 5\d\d|internal server error",
)
# The meaning of the API's own words for an error, for any text.
FAILURES = {"authentication_failed": FailureKind.LOGIN, "billing_error": FailureKind.LOGIN}


class ClaudeAgent(ProgramAgent):
    """Runs Claude Code with our server and hooks alone, and no settings of user and project."""

    VARIABLES = ("ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CONFIG_DIR")

    def __init__(self, context: PluginContext, settings: RunSettings) -> None:
        super().__init__(context, settings, settings.claude)

    def stream(self) -> Stream:
        """Read what `claude -p` prints."""
        return _Stream()

    def environment(self, task: AgentTask) -> Mapping[str, str]:
        """Return how long it waits for our server; the file that names the server says what that needs."""
        return {"MCP_TIMEOUT": str(SERVER_SECONDS * 1000)}

    def arguments(self, task: AgentTask, folder: Path) -> list[str]:
        """Return them; our server, our hooks and what is denied are in files."""
        server = {"command": task.server[0], "args": [*task.server[1:]], "env": task.server_environment}
        # An agent that edits the state of sessions could complete steps without a review; `//` begins an absolute path.
        rules = {"deny": [f"Edit(/{self._context.workspace.state_dir}/**)"]}
        settings = private_file(
            folder, "settings.json", {"hooks": hooks_of(task, "claude", HOOKS), "permissions": rules}
        )
        more = [tool for what, tools in MORE_TOOLS.items() if task.allows(what) for tool in tools]
        allowed = ["mcp__deepwork", *more, *(("Read", "Edit", "Write") if task.allows("all") else ())]
        servers = private_file(folder, "mcp.json", {"mcpServers": {"deepwork": server}})
        return [
            *("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
            *("--strict-mcp-config", "--mcp-config", servers),
            *("--setting-sources", "", "--settings", settings, "--no-session-persistence"),
            *("--tools", "default" if "all" in task.allow else ",".join((*TOOLS, *more))),
            *("--permission-mode", "acceptEdits", "--allowedTools", ",".join(allowed)),
            *(("--max-budget-usd", f"{task.budget_usd:.6f}") if task.budget_usd is not None else ()),
        ]


class _Stream:
    """What one process has printed so far."""

    def __init__(self) -> None:
        self.is_lost = self.has_result = False
        self._resets_at: datetime | None = None
        self._usage: dict[str, tuple[int, int]] = {}
        self._error = ""

    def events(self, message: dict[str, Any]) -> Iterator[AgentEvent]:
        """Return what a message tells."""
        match message.get("type"):
            case "system":
                servers = [
                    (server.get("name"), server.get("status")) for server in mappings(message.get("mcp_servers"))
                ]
                if ("deepwork", "failed") in servers:
                    # It would work with its other tools alone, and no step could be reported.
                    self.is_lost = True
                    yield Failed("Claude Code has not reached the server of the session")
            case "assistant":
                yield from self._assistant(message)
            case "user":
                for block in mappings(mapping(message.get("message")).get("content")):
                    if block.get("type") == "tool_result":
                        yield Called("", str(block.get("tool_use_id")), is_done=True)
            case "stream_event":
                yield from self._streamed(mapping(message.get("event")), str(message.get("api_message_id")))
            case "rate_limit_event":
                info = mapping(message.get("rate_limit_info"))
                if info.get("status") == "rejected" and (moment := count(info.get("resetsAt"))) < 2**37:
                    self._resets_at = datetime.fromtimestamp(moment, UTC) if moment else None
            case "result":
                self.has_result = True
                yield from self._result(message)

    def ended(self, code: int, said: str) -> Iterator[AgentEvent]:
        """Tell of an end without a result."""
        if not self.has_result:
            yield Failed(f"Claude Code {said}")

    def _assistant(self, message: dict[str, Any]) -> Iterator[AgentEvent]:
        answer = mapping(message.get("message"))
        if message.get("is_api_error_message") or message.get("isApiErrorMessage") or message.get("error"):
            self._error = str(message.get("error"))
            return
        if answer.get("id") not in self._usage:
            yield from self._spent(str(answer.get("id")), mapping(answer.get("usage")))
        for block in mappings(answer.get("content")):
            if block.get("type") == "text":
                yield Said(str(block.get("text")))
            elif block.get("type") == "tool_use":
                yield Called(str(block.get("name")), str(block.get("id")))

    def _streamed(self, event: dict[str, Any], message_id: str) -> Iterator[AgentEvent]:
        """Take the usage of a request where it is exact: a message repeats what was known at its beginning."""
        if event.get("type") == "message_start":
            start = mapping(event.get("message"))
            yield from self._spent(str(start.get("id")), mapping(start.get("usage")))
        elif event.get("type") == "message_delta" and message_id in self._usage:
            yield from self._spent(message_id, mapping(event.get("usage")))

    def _spent(self, message_id: str, usage: dict[str, Any]) -> Iterator[AgentEvent]:
        inputs, outputs = self._usage.get(message_id, (0, 0))
        used = (max(inputs, _input(usage)), max(outputs, count(usage.get("output_tokens"))))
        if used != (inputs, outputs) or message_id not in self._usage:
            self._usage[message_id] = used
            yield Spent(message_id, *used)

    def _result(self, result: dict[str, Any]) -> Iterator[AgentEvent]:
        """Add what was not of the conversation, such as titles, and say what has gone wrong."""
        totals = [*mapping(result.get("modelUsage")).values()] or [result.get("usage")]
        inputs, outputs = (sum(values) for values in zip(*map(_total, map(mapping, totals)), strict=True))
        cost = result.get("total_cost_usd")
        seen_inputs, seen_outputs = (sum(used[index] for used in self._usage.values()) for index in (0, 1))
        yield Spent(
            f"{result.get('session_id')}:rest",
            inputs - seen_inputs,
            outputs - seen_outputs,
            float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
        )
        if result.get("is_error"):
            yield from self._refused(result)

    def _refused(self, result: dict[str, Any]) -> Iterator[AgentEvent]:
        """Tell a limit from a failure: by the words of the API, or else by the text."""
        text = one_line(str(result.get("result") or result.get("errors") or result.get("subtype")), MAX_QUOTED)
        error = self._error
        if result.get("terminal_reason") == "prompt_too_long":
            yield Failed(text, FailureKind.CONTEXT)
        elif error in FAILURES:
            yield Failed(text, FAILURES[error])
        elif error == "rate_limit":
            yield Limited(self._resets_at or reset_time(text, datetime.now(UTC)), LimitCause.USAGE, text)
        elif result.get("subtype") != "error_max_budget_usd":  # the runner compares what was spent by itself
            yield refusal(text, WORDS, self._resets_at)


def _input(usage: dict[str, Any]) -> int:
    """Return what was read; `input_tokens` leaves out what comes from the cache or goes there."""
    return sum(count(usage.get(f"{name}input_tokens")) for name in ("", "cache_creation_", "cache_read_"))


def _total(usage: dict[str, Any]) -> tuple[int, int]:
    if "inputTokens" in usage:
        names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        return sum(count(usage.get(name)) for name in names), count(usage.get("outputTokens"))
    return _input(usage), count(usage.get("output_tokens"))
