"""One middleware around every tool call: who calls, what is logged, how errors are worded."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from fastmcp.exceptions import FastMCPError, NotFoundError, ToolError, ValidationError
from fastmcp.server.context import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from pydantic import ValidationError as PydanticError

from deepwork.documents import location_in, nearest
from deepwork.engine.sessions import StateManager
from deepwork.errors import DeepWorkError
from deepwork.ports.call import ClientInfo, Connection, Report, ToolCall

log = logging.getLogger("deepwork.calls")

_STATE_KEY = "deepwork.connection"


class Calls(Middleware):
    """Knows the call that is being served; its stack belongs to the connection."""

    def __init__(self, sessions: StateManager) -> None:
        self._sessions = sessions
        self._process = Connection()
        self._current: ContextVar[ToolCall] = ContextVar("deepwork_call")

    def current(self) -> ToolCall:
        """Give the call that the running tool serves."""
        return self._current.get()

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Make the `ToolCall` for whatever is asked; resources may want it too."""
        caller = context.fastmcp_context
        call = ToolCall(self._connection(caller), client=_client(caller), report=_reporter(caller))
        token = self._current.set(call)
        try:
            return await call_next(context)
        finally:
            self._current.reset(token)

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Log the call with tool name and stack (JOBS-REQ-001.1.12), refused ones included."""
        name = context.message.name
        began = time.perf_counter()
        outcome = "ok"
        try:
            return await call_next(context)
        except NotFoundError:
            outcome = "unknown tool"
            tools = [tool.name for tool in await _tools(context.fastmcp_context)]
            raise ToolError(f"Unknown tool: {name[:100]!r}{nearest(name, tools)}", log_level=logging.DEBUG) from None
        except FastMCPError as error:
            outcome = f"error: {str(error).splitlines()[0][:200]}"
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            stack = [f"{entry.workflow}@{entry.step}" for entry in self._sessions.last_seen(self.current())]
            spent = round((time.perf_counter() - began) * 1000, 1)
            facts = {"tool": name[:100], "stack": stack, "ms": spent, "outcome": outcome}
            shown = " > ".join(stack) or "empty"
            log.info("%s: %s (stack: %s, %s ms)", name[:100], outcome, shown, spent, extra={"facts": facts})

    def _connection(self, context: Context | None) -> Connection:
        """Tell connections apart.

        stdio and memory are one connection. Over HTTP it is the session that the transport itself issued:
        the SDK keeps an object for it, whose `state` lives as long as the session. Where every request
        is a connection of its own (2026-07-28, stateless), so is the stack.
        """
        if context is None or context.transport in (None, "stdio") or context.request_context is None:
            return self._process
        # A private name of the SDK; without it every request is taken for a connection of its own.
        state = getattr(getattr(context.request_context.session, "_connection", None), "state", {})
        found = state.setdefault(_STATE_KEY, Connection())
        return found if isinstance(found, Connection) else Connection()


def translated(tool: str, error: Exception) -> ToolError:
    """Put an error into words for the agent."""
    if isinstance(error, FastMCPError):
        return error if isinstance(error, ToolError) else ToolError(str(error), log_level=logging.DEBUG)
    if isinstance(error, DeepWorkError):
        return ToolError(str(error), log_level=logging.DEBUG)
    log.error("%s failed: this is a bug of DeepWork or of a plugin", tool, exc_info=error)
    return ToolError(
        f"{tool} failed by an internal error, which the server's log explains. Call again; if it stays so, tell the "
        "user.",
        log_level=logging.DEBUG,
    )


def argument_error(
    tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any], error: ValidationError
) -> ToolError:
    """Say which argument is wrong, what was given, and what would be right."""
    cause = error.__cause__
    if not isinstance(cause, PydanticError):
        return ToolError(f"{tool}: the arguments do not fit", log_level=logging.DEBUG)
    valid = list(schema.get("properties", {}))
    wrong: dict[tuple[str | int, ...], list[str]] = {}
    for detail in cause.errors(include_url=False)[:50]:
        location = tuple(location_in(arguments, detail["loc"], missing=detail["type"] == "missing_argument"))
        wrong.setdefault(location, []).append(_wording(detail, valid))
    # Of the forms that a value may have, the one that was meant is the one that is wrong only deeper inside.
    deepest = [one for one in wrong if not any(one == other[: len(one)] for other in wrong if other != one)]
    lines = [
        f"{'.'.join(map(str, location))[:200]}: {', or '.join(dict.fromkeys(wrong[location]))}"
        for location in deepest[:10]
    ]
    return ToolError(f"{tool}: wrong arguments; nothing was changed\n" + "\n".join(lines), log_level=logging.DEBUG)


def _wording(detail: Any, valid: list[str]) -> str:
    if detail["type"] == "missing_argument":
        return "is required"
    if detail["type"] == "unexpected_keyword_argument":
        return f"is no parameter{nearest(str(detail['loc'][-1]), valid) or '; there are none'}"
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    return f"{message}, not {type(detail['input']).__name__}"


def _reporter(context: Context | None) -> Report:
    async def report(done: float, total: float | None, text: str | None) -> None:
        try:
            if context is not None:
                await context.report_progress(done, total, text)
        except Exception:
            # A client that has gone, say: the call itself will find out.
            log.debug("progress could not be told", exc_info=True)

    return report


def _client(context: Context | None) -> ClientInfo | None:
    if context is None or context.request_context is None:
        return None
    told = context.request_context.session.client_params
    return ClientInfo(told.client_info.name, told.client_info.version) if told else None


async def _tools(context: Context | None) -> Any:
    return await context.fastmcp.list_tools(run_middleware=False) if context else []
