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
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ErrorData
from pydantic import ValidationError as PydanticError

from deepwork.documents.problems import location_in
from deepwork.errors import DeepWorkError
from deepwork.ports.call import LOCAL, ClientInfo, Connection, Report, ToolCall
from deepwork.sessions.manager import StateManager
from deepwork.text.escape import visible
from deepwork.text.suggest import nearest

log = logging.getLogger("deepwork.calls")

_STATE_KEY = "deepwork.connection"
# What the SDK answers to a request before the handshake.
_TOO_EARLY = ErrorData(code=INVALID_PARAMS, message="Invalid request parameters", data="")


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
        principal, may_list = _principal(caller)
        call = ToolCall(
            self._connection(caller, principal),
            principal=principal,
            may_list=may_list,
            client=_client(caller),
            report=_reporter(caller),
        )
        token = self._current.set(call)
        try:
            return await call_next(context)
        except PydanticError as error:
            raise _params_error(error) from None
        except MCPError as error:
            if error.error == _TOO_EARLY:
                raise MCPError(
                    INVALID_PARAMS, "Invalid params: send initialize first, or the 2026-07-28 envelope in params._meta"
                ) from None
            raise
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
            first_line = next(iter(str(error).splitlines()), "")
            outcome = f"error: {_brief(first_line, 200)}"
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            stack = [f"{entry.workflow}@{entry.step}" for entry in self._sessions.connection(self.current()).entries]
            spent = round((time.perf_counter() - began) * 1000, 1)
            tool, shown = _brief(name, 100), _brief(" > ".join(stack), 100) or "empty"
            facts = {"tool": name[:100], "stack": stack, "ms": spent, "outcome": outcome}
            log.info("%s: %s (stack: %s, %s ms)", tool, outcome, shown, spent, extra={"facts": facts})

    def _connection(self, context: Context | None, principal: str) -> Connection:
        """Tell connections apart.

        stdio and memory are one connection. Over HTTP it is the session that the transport itself issued:
        the SDK keeps an object for it, whose `state` lives as long as the session. Where every request
        is a connection of its own (2026-07-28, stateless), so is the stack.
        """
        if not _is_http(context) or context is None or context.request_context is None:
            return self._process
        # A private name of the SDK; without it every request is taken for a connection of its own.
        state = getattr(getattr(context.request_context.session, "_connection", None), "state", {})
        found = state.setdefault(f"{_STATE_KEY}.{principal}", Connection())
        return found if isinstance(found, Connection) else Connection()


def _brief(text: str, size: int) -> str:
    """Cut a text for the log to so many bytes, as they are shown to people."""
    return visible(text[:size]).encode()[:size].decode(errors="ignore")


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


def _params_error(error: PydanticError) -> MCPError:
    """Say which field of a request is wrong; the SDK says only that one is."""
    details = error.errors(include_url=False, include_input=False)[:3]
    wrong = [f"{'.'.join(map(str, one['loc']))[:200]}: {one['msg'][:1].lower()}{one['msg'][1:]}" for one in details]
    return MCPError(INVALID_PARAMS, f"Invalid params: {'; '.join(wrong)}")


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


def _is_http(context: Context | None) -> bool:
    return context is not None and context.transport not in (None, "stdio")


def _principal(context: Context | None) -> tuple[str, bool]:
    """Name the caller, and say whether it may be told which sessions there are.

    With a token it is whom the guard has recognised. Without one it is anybody on this machine.
    """
    if not _is_http(context) or context is None:
        return LOCAL, True
    request = context.request_context.request if context.request_context else None
    user = request.scope.get("user") if request is not None else None
    return (user.username, True) if isinstance(user, AuthenticatedUser) else (LOCAL, False)


def _client(context: Context | None) -> ClientInfo | None:
    if context is None or context.request_context is None:
        return None
    told = context.request_context.session.client_params
    return ClientInfo(told.client_info.name, told.client_info.version) if told else None


async def _tools(context: Context | None) -> Any:
    return await context.fastmcp.list_tools(run_middleware=False) if context else []
