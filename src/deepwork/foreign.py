"""Names of FastMCP, the MCP SDK, uvicorn, sse-starlette and pygls that these do not promise to keep.

The private ones are used in this module alone; the others, such as the attributes of uvicorn's protocols, where our
classes extend theirs. Each is listed here, with what depends on it. `demand` refuses to serve without those whose
absence would go unnoticed at first; `missing` is for `deepwork doctor`, and for the tests with newer releases.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

from deepwork.errors import DeepWorkError

# A release of each library that has all its names.
TESTED = {"fastmcp": "4.1.2", "mcp": "2.3.0", "sse-starlette": "3.7.0", "uvicorn": "0.54.0"}


@dataclass(frozen=True)
class ForeignName:
    """A name that another library may take away.

    Args:
        library: The distribution that has it.
        owner: Where it is: `module:class`.
        name: An attribute of the class, or of its objects.
        purpose: What depends on it.
        transports: What cannot be served without it. If empty, all works, only slower.
    """

    library: str
    owner: str
    name: str
    purpose: str
    transports: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The class and the attribute."""
        return f"{self.owner.partition(':')[2]}.{self.name}"

    def is_there(self) -> bool:
        """True if the installed release has it."""
        module, _, owner = self.owner.partition(":")
        try:
            found = getattr(import_module(module), owner)
        except (ImportError, AttributeError):
            return False
        return hasattr(found, self.name) or any(_sets(method, self.name) for method in _methods(found))


def _methods(owner: type) -> Iterator[FunctionType]:
    yield from (method for kind in owner.__mro__ for method in vars(kind).values() if isinstance(method, FunctionType))


def _sets(method: FunctionType, name: str) -> bool:
    """True if a method sets this attribute, of its object in all likelihood."""
    steps = dis.get_instructions(method) if name in method.__code__.co_names else ()
    return any(step.opname == "STORE_ATTR" and step.argval == name for step in steps)


def _names(library: str, owner: str, names: str, purpose: str, *transports: str) -> Iterator[ForeignName]:
    yield from (ForeignName(library, owner, name, purpose, transports) for name in names.split())


_HTTP = ("http", "sse")
_FASTMCP = "fastmcp.server.server:FastMCP"
_MANAGER = "mcp.server.streamable_http_manager:StreamableHTTPSessionManager"
_H11 = "uvicorn.protocols.http.h11_impl:H11Protocol"
_CYCLE = "uvicorn.protocols.http.h11_impl:RequestResponseCycle"
_SOCKET = "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol"

NAMES = (
    *_names("fastmcp", _FASTMCP, "_mcp_server _lifespan_manager", "to serve our own streams", "stdio"),
    *_names("fastmcp", _FASTMCP, "_state_store", "a quick start"),
    *_names("fastmcp", "fastmcp.server.http:StreamableHTTPASGIApp", "session_manager", "limits of sessions", "http"),
    *_names("mcp", _MANAGER, "max_sessions _session_owners", "limits of sessions", "http"),
    *_names("mcp", "mcp.server.session:ServerSession", "_connection", "the stack of a connection", *_HTTP),
    *_names("mcp", "mcp.server.connection:Connection", "state", "the stack of a connection", *_HTTP),
    *_names("mcp", "mcp.server.lowlevel:Server", "get_tool_input_schema", "quick calls over HTTP"),
    *_names("mcp", "mcp.server.lowlevel:Server", "get_capabilities", "that only what is served is declared"),
    *_names("uvicorn", "uvicorn:Server", "handle_exit servers shutdown", "an end in order", *_HTTP),
    *_names("uvicorn", _H11, "cycle loop on_response_complete transport", "limits of connections", *_HTTP),
    *_names("uvicorn", _H11, "pause_writing resume_writing", "limits of connections", *_HTTP),
    *_names("uvicorn", _CYCLE, "more_body response_complete", "limits of connections", *_HTTP),
    *_names("uvicorn", _SOCKET, "close_sent handshake_complete loop transport", "limits of connections", *_HTTP),
    *_names("uvicorn", _SOCKET, "pause_writing resume_writing", "limits of connections", *_HTTP),
    *_names("sse-starlette", "sse_starlette.sse:AppStatus", "disable_automatic_graceful_drain", "last answers", *_HTTP),
)


def missing(names: Iterable[ForeignName]) -> list[ForeignName]:
    """Return the names that the installed releases do not have."""
    return [name for name in names if not name.is_there()]


def demand(transport: str) -> None:
    """Check that all names are there which a transport needs.

    Raises:
        DeepWorkError: One is missing: limits would not hold, or stacks would be lost, without an error.
    """
    if lacking := missing(name for name in NAMES if transport in name.transports):
        raise _refusal(transport, lacking)


def _refusal(transport: str, lacking: list[ForeignName]) -> DeepWorkError:
    from importlib.metadata import version

    library = lacking[0].library
    names = ", ".join(name.path for name in lacking)
    return DeepWorkError(
        f"{library} {version(library)} cannot be served over {transport}: it lacks {names}",
        hint=f"Install another release of {library}, for instance {TESTED[library]}, beside deepwork.",
    )


def stdio_parts(server: Any) -> tuple[Callable[[], AbstractAsyncContextManager[Any]], Any]:
    """Return the lifespan and the protocol of a FastMCP server, which has no public way to serve given streams.

    Raises:
        DeepWorkError: This FastMCP lacks them. Its own stdio server does not help: stdout leads to stderr by now, so
            its answers would go there, and the client would wait for ever.
    """
    lacking = [name for name in NAMES if "stdio" in name.transports and getattr(server, name.name, None) is None]
    if lacking:
        raise _refusal("stdio", lacking)
    return server._lifespan_manager, server._mcp_server


def look_up_schemas(server: Any, schema_of: Callable[[str], Any]) -> None:
    """Have the schema of a called tool looked up, if the SDK asks for it; it would list all tools instead."""
    protocol: Any = getattr(server, "_mcp_server", None)
    if hasattr(protocol, "get_tool_input_schema"):
        protocol.get_tool_input_schema = schema_of


def declare(server: Any, served: Callable[[Any], Any]) -> None:
    """Have a server declare what `served` makes of the capabilities that FastMCP declares for every server."""
    protocol: Any = getattr(server, "_mcp_server", None)
    if declared := getattr(protocol, "get_capabilities", None):
        protocol.get_capabilities = lambda *args, **options: served(declared(*args, **options))


def choose_state_store(server_class: type, choose: Callable[[Any, Callable[[], Any]], Any]) -> None:
    """Have `choose(server, own)` decide which store of session state a server uses; `own` opens FastMCP's."""
    own: Any = getattr(server_class, "_state_store", None)
    if isinstance(own, property):
        chosen = property(lambda server: choose(server, lambda: own.__get__(server)))
        server_class._state_store = chosen  # type: ignore[attr-defined]  # FastMCP reads it


def connection_state(session: Any) -> dict[str, Any]:
    """Return what the SDK keeps with the connection of a session, for as long as that lives."""
    state: dict[str, Any] = session._connection.state
    return state


def session_managers(routes: Iterable[Any]) -> list[Any]:
    """Return what manages the sessions of FastMCP's routes."""
    from fastmcp.server.http import StreamableHTTPASGIApp

    served = [route.endpoint for route in routes if isinstance(getattr(route, "endpoint", None), StreamableHTTPASGIApp)]
    return [app.session_manager for app in served if app.session_manager is not None]


def session_owners(manager: Any) -> list[Any]:
    """Return the owner of each session that is open."""
    return list(manager._session_owners.values())


def forget_ended(language_server: Any) -> None:
    """Forget notifications that have ended: pygls keeps each for an answer, and they have none."""
    futures = getattr(language_server.protocol, "_request_futures", {})
    for key in [key for key, future in futures.items() if future.done()]:
        del futures[key]
