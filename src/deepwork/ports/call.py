"""What a tool may know about the call that it serves."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NamedTuple

import anyio
from anyio import from_thread

# The principal of stdio, of memory, and of HTTP without tokens.
LOCAL = "local"

Report = Callable[[float, float | None, str | None], Awaitable[None]]
# Takes a question, and name and JSON Schema of the field for its answer; returns the answer, None if not answered.
Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[Any]]
# Takes what to tell the user, and the address of the page that they are to open.
Show = Callable[[str, str], Awaitable[None]]

_ALLOW = {"type": "boolean", "title": "Allow", "default": False}


class Connection:
    """Identity of one client connection. The stack of workflows belongs to it."""


class ClientInfo(NamedTuple):
    """What a client says it is. Nobody checks it."""

    name: str
    version: str


async def _report_nothing(_completed: float, _total: float | None, _text: str | None) -> None:
    """Do nothing: a call that no client has made has no client to report to."""


@dataclass(frozen=True)
class Caller:
    """Who asks over a transport.

    Attributes:
        principal: `local`, or the name that a token stands for.
        may_list: Whether they may be told which sessions there are; over HTTP only with a token, because without one
            everybody on the machine is `local`.
    """

    principal: str = LOCAL
    may_list: bool = True

    def may_see(self, principal: str | None) -> bool:
        """True if they may be told of the sessions of this principal without naming them."""
        return self.may_list and principal == self.principal


def caller_of(scope: Mapping[str, Any] | None) -> Caller:
    """Return who asks: of a request or WebSocket, by its ASGI scope; without one, who sits at this machine.

    With a token it is the user that the guard of the server has set.
    """
    if scope is None:
        return Caller()
    name = getattr(scope.get("user"), "username", None)
    return Caller(name) if name else Caller(may_list=False)


def is_loopback(host: str) -> bool:
    """True if a host name or address means the machine itself, so that only its own programs reach it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True)
class ToolCall:
    """One call of one tool.

    A tool function that takes a parameter of this type gets it from the host; agents do not see it.

    Attributes:
        connection: The key of a stack of workflows. On stdio and in memory there is one connection for the whole
            server; over HTTP there is one for each session that the transport itself issued.
        principal: Who calls: `local`, or the name that a token stands for.
        may_list: Whether the caller may be told which sessions there are; over HTTP only with a token.
        client: The client's program, if it has named itself.
        id: The client's own id of the call, by which its hooks name it, too; empty if it names none.
        report: Sends what `progress` is called with.
        ask: Puts a question to the person at the client; None where the client does not offer that.
        asks_person: Whether an answer to it counts as that of a person. So it is on stdio, where the user has started
            the client that shows the form; over HTTP any program that has a token can answer.
    """

    connection: Connection = field(default_factory=Connection)
    principal: str = LOCAL
    may_list: bool = True
    client: ClientInfo | None = None
    id: str = ""
    report: Report = field(default=_report_nothing, repr=False, compare=False)
    ask: Ask | None = field(default=None, repr=False, compare=False)
    asks_person: bool = True
    show: Show | None = field(default=None, repr=False, compare=False)
    is_here: bool = True

    @property
    def caller(self) -> Caller:
        """Who calls, and what of sessions they may see."""
        return Caller(self.principal, self.may_list)

    async def progress(self, completed: float, total: float | None = None, text: str | None = None) -> None:
        """Tell the client how far the work is, if it wants to know. Never fails; `completed` has to grow.

        A client that gets progress waits longer before it gives a call up.
        """
        await self.report(completed, total, text)

    @property
    def can_elicit(self) -> bool:
        """Whether the client can put a question to a person (MCP elicitation)."""
        return self.ask is not None

    async def elicit(self, question: str) -> bool:
        """Ask the person at the client a yes-or-no question, and say whether the answer was yes.

        Ask before anything is changed: in the protocol of 2026-07-28 the client sends the whole call again with the
        answer, so the tool runs from its beginning once more, and this method then returns. Only async tools can ask.

        Raises:
            RuntimeError: The client offers no elicitation; see `can_elicit`.
        """
        return await self._asked(question, "allow", _ALLOW) is True

    async def choose(self, question: str, options: Sequence[str]) -> str | None:
        """Let the person at the client choose one of the options; None if they choose none.

        The same holds as for `elicit`, and a call that is sent again brings one answer: ask one question in a call.

        Raises:
            RuntimeError: The client offers no elicitation; see `can_elicit`.
        """
        answer = await self._asked(question, "choice", {"type": "string", "title": "Choice", "enum": [*options]})
        return answer if answer in options else None

    async def _asked(self, question: str, name: str, schema: Mapping[str, Any]) -> Any:
        if self.ask is None:
            raise RuntimeError("the client offers no elicitation")
        return await self.ask(question, name, schema)

    @property
    def cancelled(self) -> bool:
        """Whether the caller has gone. Async functions are cancelled by the host; one in a thread has to look."""
        try:
            from_thread.check_cancelled()
        except RuntimeError:  # not in a worker thread
            return anyio.current_effective_deadline() == -math.inf
        except BaseException:  # noqa: BLE001 - each event loop has a class of its own for it
            return True
        return False
