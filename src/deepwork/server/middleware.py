"""The FastMCP middleware around every message: who calls, what is logged, how errors are worded."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from fastmcp.exceptions import FastMCPError, NotFoundError, ToolError
from fastmcp.server.context import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ErrorData, TextContent
from pydantic import ValidationError as PydanticError

from deepwork.errors import DeepWorkError
from deepwork.foreign import connection_state
from deepwork.ports.call import ClientInfo, Connection, Report, ToolCall, caller_of, is_loopback
from deepwork.ports.records import UnlistedTool
from deepwork.server.argument_errors import params_error
from deepwork.server.elicitation import asker, shower
from deepwork.sessions.manager import StateManager
from deepwork.text import MAX_LISTED, near, visible, visible_lines

log = logging.getLogger("deepwork.calls")

WORKFLOW_TOOLS = ("get_workflows", "start_workflow", "finished_step", "abort_workflow")

_STATE_KEY = "deepwork.connection"
# Where Claude Code and Codex put their ids of a call, which they hand over to hooks as `tool_use_id`.
_CALL_IDS = ("claudecode/toolUseId", "callId")
# The SDK's error for a request before the handshake.
_BEFORE_HANDSHAKE = ErrorData(code=INVALID_PARAMS, message="Invalid request parameters", data="")


class CallMiddleware(Middleware):
    """Makes a `ToolCall` for every message, logs tool calls, and words the errors of requests."""

    def __init__(self, sessions: StateManager, unlisted: Mapping[str, UnlistedTool] | None = None) -> None:
        self._sessions = sessions
        self._unlisted = unlisted or {}
        self._process = Connection()
        self._current: ContextVar[ToolCall] = ContextVar("deepwork_call")

    def current(self) -> ToolCall:
        """Return the call that the running tool serves."""
        return self._current.get()

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Make the `ToolCall` for any message, because functions of resources may take one too."""
        caller = context.fastmcp_context
        is_http = caller is not None and caller.transport not in (None, "stdio")
        request = _request(caller) if is_http else None
        who = caller_of((request.scope if request else {}) if is_http else None)
        call = ToolCall(
            self._http_connection(caller, who.principal) if is_http else self._process,
            principal=who.principal,
            may_list=who.may_list,
            client=_client(caller),
            id=_call_id(caller),
            report=_reporter(caller),
            ask=asker(caller),
            asks_person=not is_http,
            show=shower(caller),
            is_here=not is_http or (request is not None and is_loopback(request.url.hostname or "")),
        )
        token = self._current.set(call)
        try:
            return await call_next(context)
        except PydanticError as error:
            raise params_error(error) from None
        except MCPError as error:
            if error.error == _BEFORE_HANDSHAKE:
                raise MCPError(
                    INVALID_PARAMS, "Invalid params: send initialize first, or the 2026-07-28 envelope in params._meta"
                ) from None
            raise
        finally:
            self._current.reset(token)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Log the call with tool name and stack (JOBS-REQ-001.1.12), refused calls included."""
        name = context.message.name
        if name in self._unlisted:
            return await self._answer(self._unlisted[name], context.message.arguments or {})
        started = time.perf_counter()
        outcome = "ok"
        try:
            return await call_next(context)
        except NotFoundError:
            outcome = "unknown tool"
            tools = [tool.name for tool in await _tools(context.fastmcp_context)]
            raise ToolError(_unknown_tool(name, tools), log_level=logging.DEBUG) from None
        except FastMCPError as error:
            first_line = next(iter(str(error).splitlines()), "")
            outcome = f"error: {_brief(first_line, 200)}"
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            stack = [f"{entry.workflow}@{entry.step}" for entry in self._sessions.connection(self.current()).entries]
            milliseconds = round((time.perf_counter() - started) * 1000, 1)
            tool, stack_text = _brief(name, 100), _brief(" > ".join(stack), 100) or "empty"
            facts = {"tool": name[:100], "stack": stack, "ms": milliseconds, "outcome": outcome}
            log.info("%s: %s (stack: %s, %s ms)", tool, outcome, stack_text, milliseconds, extra={"facts": facts})

    async def _answer(self, tool: UnlistedTool, arguments: Mapping[str, Any]) -> ToolResult:
        """Answer a tool that is not listed. Programs call it often, so a call that says nothing is logged at debug."""
        started = time.perf_counter()
        text, outcome = tool.silence, "ok"
        try:
            text = await tool.answer(self.current(), arguments)
            return ToolResult(content=[TextContent(type="text", text=text)])
        except Exception as error:
            outcome = type(error).__name__
            raise translated(tool.name, error) from error
        finally:
            milliseconds = round((time.perf_counter() - started) * 1000, 1)
            is_silent = outcome == "ok" and text == tool.silence
            facts = {"tool": tool.name, "stack": [], "ms": milliseconds, "outcome": outcome}
            level = logging.DEBUG if is_silent else logging.INFO
            log.log(level, "%s: %s (%s ms)", tool.name, outcome, milliseconds, extra={"facts": facts})

    def _http_connection(self, context: Context | None, principal: str) -> Connection:
        """Return the connection of a call over HTTP, to which the stack belongs; stdio and memory are one connection.

        A connection is a session of the transport: the SDK keeps an object for it, whose `state` lives as long as the
        session. Where the transport has no sessions (2026-07-28, stateless), each request is a connection, with a
        stack of its own.
        """
        if context is None or context.request_context is None:
            return self._process
        state = connection_state(context.request_context.session)
        connection = state.setdefault(f"{_STATE_KEY}.{principal}", Connection())
        return connection if isinstance(connection, Connection) else Connection()


def _brief(text: str, size: int) -> str:
    """Escape a text for the log, and cut it to so many bytes."""
    return visible(text[:size]).encode()[:size].decode(errors="ignore")


def translated(tool: str, error: Exception) -> ToolError:
    """Turn an error into the tool error that the agent reads."""
    if isinstance(error, FastMCPError):
        return error if isinstance(error, ToolError) else ToolError(str(error), log_level=logging.DEBUG)
    if isinstance(error, DeepWorkError):
        return ToolError(visible_lines(str(error)), log_level=logging.DEBUG)
    log.error("%s failed: this is a bug of DeepWork or of a plugin", tool, exc_info=error)
    return ToolError(
        f"{tool} failed with an internal error; the server's log has the details. Call again; if it fails again, tell "
        "the user.",
        log_level=logging.DEBUG,
    )


def _unknown_tool(name: str, tools: Sequence[str]) -> str:
    """Name the tool that was probably meant, and the workflow tools; clients put prefixes before a tool's name."""
    meant = next((tool for tool in tools if name.endswith(f"_{tool}")), None) or near(name, tools)
    suggestion = f"; did you mean {meant!r}?" if meant else "."
    served = [tool for tool in WORKFLOW_TOOLS if tool in tools] or sorted(tools)[:MAX_LISTED]
    return f"Unknown tool: {name[:100]!r}{suggestion} The tools for workflows: {', '.join(served)}."


def _reporter(context: Context | None) -> Report:
    async def report(progress: float, total: float | None, text: str | None) -> None:
        try:
            if context is not None:
                await context.report_progress(progress, total, text)
        except Exception:
            # For instance the client has disconnected. The call itself must not fail because of it.
            log.debug("progress could not be sent", exc_info=True)

    return report


def _request(context: Context | None) -> Any:
    """Return the request with which a message came over HTTP."""
    return context.request_context.request if context and context.request_context else None


def _client(context: Context | None) -> ClientInfo | None:
    if context is None or context.request_context is None:
        return None
    params = context.request_context.session.client_params
    return ClientInfo(params.client_info.name, params.client_info.version) if params else None


def _call_id(context: Context | None) -> str:
    meta: Mapping[str, Any] = (context.request_context.meta if context and context.request_context else None) or {}
    return next((meta[name] for name in _CALL_IDS if isinstance(meta.get(name), str)), "")


async def _tools(context: Context | None) -> Any:
    return await context.fastmcp.list_tools(run_middleware=False) if context else []
