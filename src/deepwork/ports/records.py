"""The records that hooks give: frozen declarations of what a plugin offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from deepwork.paths.workspace import Workspace
from deepwork.ports.agent_call import AgentCall
from deepwork.ports.call import ToolCall
from deepwork.ports.context import TrustedCommand
from deepwork.ports.review_runner import ReviewRunner
from deepwork.ports.state_store import StateStore

if TYPE_CHECKING:
    from click import Option


@dataclass(frozen=True, kw_only=True)
class StateStoreSpec:
    """A state store that can be selected by name; `open` is called for the selected one only.

    Attributes:
        persists: Whether sessions are still there when the server has ended. A project may choose a store that forgets
            them only if its user trusts that.
    """

    name: str
    open: Callable[[Workspace], StateStore]
    persists: bool = True


@dataclass(frozen=True, kw_only=True)
class ReviewRunnerSpec:
    """A review runner that can be selected by name.

    Attributes:
        create: Makes the runner. It takes nothing: what the runner needs is bound to it, as by a lambda.
        max_inline_files: Up to this many files are in the payload with their contents, more files as paths only.
        gives_verdicts: Whether it gives verdicts. A runner that only hands reviews back gets all reviews of a step at
            once.
        reads_files: Whether it can open files by itself. A runner that sees only the payload is not asked if a part of
            the files is missing from it; the gate then says that there is no verdict, and why.
        concurrency: How many of its reviews may run at once, within the gate's own limit.
        judges_project: Whether its verdict depends on more than the files that it is given, such as the tests of the
            project. It is then asked at every call: a verdict on the same files may not hold any more.
        repeatable: Whether it may be asked again about the same work, and about broken work, before its pass counts:
            it costs nothing and changes nothing outside of the project.
        must_fail: Files of the project that it must refuse in the place of the work.
        waits: Whether it asks people, who answer in their own time: it answers `Waiting`, and what is reported is kept
            for them.
    """

    name: str
    create: Callable[[], ReviewRunner]
    max_inline_files: int
    gives_verdicts: bool = True
    reads_files: bool = True
    concurrency: int | None = None
    judges_project: bool = False
    repeatable: bool = False
    must_fail: tuple[str, ...] = ()
    waits: bool = False


@dataclass(frozen=True)
class ToolSpec:
    """A tool: a function whose annotations are its schema and whose docstring is its description.

    Sync functions run in a worker thread, async ones on the event loop. A parameter annotated with
    `ToolCall` is filled by the host and hidden from agents.

    Attributes:
        output: A pydantic model (typed structured content), `"object"` (any mapping), `"text"`, or
            `"json"` (any JSON value as one text block).
        always_load: Ask clients that load tools on demand to load this one at once.
        run: Called with the call and the arguments by name, in place of the function, which it calls itself. What the
            function takes before a `/` is then filled by it, and hidden from agents. It is async.
        nullable: Whether null means left out, for every argument that may be left out. The schema does not say so.
        repeatable: Whether agents may add a `request_id`, an argument that only `run` gets. With it a call can be
            repeated, and is carried out once.
    """

    name: str
    fn: Callable[..., Any]
    title: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    output: type[BaseModel] | Literal["object", "text", "json"] = "object"
    always_load: bool = False
    run: Callable[[ToolCall, Mapping[str, Any]], Awaitable[Any]] | None = None
    nullable: bool = False
    repeatable: bool = False


# Gives values for an argument: called with the call, what is typed so far, and the other arguments; sync or async.
Complete = Callable[[ToolCall, str, Mapping[str, str]], Sequence[str] | Awaitable[Sequence[str]]]


@dataclass(frozen=True)
class ResourceSpec:
    """An MCP resource. With `{name}` in the URI it is a template, whose function takes these names.

    Attributes:
        complete: By name of the URI, what gives the values that clients offer while their user types.
    """

    uri: str
    fn: Callable[..., Any]
    name: str
    description: str
    mime_type: str = "text/plain"
    complete: Mapping[str, Complete] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptSpec:
    """An MCP prompt: a function whose parameters are the prompt's, and which gives its text.

    A parameter annotated with `ToolCall` is filled by the host and hidden from clients.

    Attributes:
        complete: By parameter, what gives the values that clients offer while their user types.
    """

    name: str
    fn: Callable[..., Any]
    description: str
    complete: Mapping[str, Complete] = field(default_factory=dict)


class Level(StrEnum):
    """How much a finding matters. Information is never a warning."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """One thing that a check has found; `cure` is the command or line that fixes it."""

    level: Level
    text: str
    cure: str | None = None


@dataclass(frozen=True)
class Check:
    """A check for `deepwork doctor`; `run` gives its findings.

    Attributes:
        commands: Gives the commands that files of the project name and that need trust, for `deepwork trust`. Called
            outside of an event loop.
    """

    name: str
    run: Callable[[], Iterable[Finding]]
    commands: Callable[[], Iterable[TrustedCommand]] = tuple


@dataclass(frozen=True)
class ToolSet:
    """Tools, resources and prompts that are served or left out together.

    Attributes:
        prefix: Put before every tool name when other sets are served beside this one.
        instructions: A few sentences for the server's instructions.
        subsets: Names of tools that can be served without the others, by the name of the subset: `--tools SET:SUBSET`.
    """

    name: str
    tools: Sequence[ToolSpec]
    resources: Sequence[ResourceSpec] = ()
    prompts: Sequence[PromptSpec] = ()
    prefix: str | None = None
    instructions: str = ""
    subsets: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class UnlistedTool:
    """A tool that a server answers and never lists, with all tool sets.

    No listed tool may have its name.

    Attributes:
        answer: Takes the call and its arguments as they came, unchecked, and returns a text.
        silence: The text that says nothing: such a call is logged at the level debug.
    """

    name: str
    answer: Callable[[ToolCall, Mapping[str, Any]], Awaitable[str]]
    silence: str = ""


@dataclass(frozen=True, kw_only=True)
class AgentMessage:
    """A message to an agent.

    Attributes:
        id: Which message it is, in letters, digits, `-` and `_`; it is shown, too.
        text: What its sender wrote. The client shows it quoted, so that no line of it looks like one of ours. A notice
            of the plugin itself has none; an agent that has read the id in a reply is not told of it.
        about: What the plugin knows of the message, in a line: who has sent it, and how urgent it is. It stands before
            the text, outside of the quotation, so nothing but what the plugin vouches for belongs here.
        answer: How the agent can answer, in a line after the text.
        is_pause: Whether `about` tells of a pause of its work. That comes first, and sub-agents hear it, too.
    """

    id: str
    text: str
    about: str = ""
    answer: str = ""
    is_pause: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentMail:
    """The messages to agents, for the hooks of their clients.

    Attributes:
        unread: Returns the unread messages to an agent, by its id, in the order in which to read them; and notices of
            the plugin itself, each for as long as it is true.
        mark_delivered: Takes the ids of texts that have arrived, those of others among them, which it ignores. Until
            then its messages are unread.
        waits_for_person: True if an agent, by its id, can do nothing before a person acts: it is not reminded of its
            open steps then.
        agent_of: Returns the id of the agent that a client session is from a call of a plugin's tool on; None if the
            call says nothing of it. Without it no client session is known to be an agent.
    """

    name: str
    unread: Callable[[str], Awaitable[Sequence[AgentMessage]]]
    mark_delivered: Callable[[Sequence[str]], Awaitable[None]]
    waits_for_person: Callable[[str], Awaitable[bool]] | None = None
    agent_of: Callable[[AgentCall], str | None] | None = None


@dataclass(frozen=True, kw_only=True)
class ClaimKeeper:
    """What the agents of a session hold of work that is shared, for who starts one of them after the other.

    Which session an agent works on says the variable `SESSION_VARIABLE` of `deepwork.ports.agent` to its server.

    Attributes:
        name: The name.
        seconds: How often claims have to be renewed.
        held: Returns what the agents of a session hold, each in a line for the next of them, with the id to go on as.
        renew: Keeps what the agents of a session hold.
        release: Gives it away; takes the session and the reason.
    """

    name: str
    seconds: float
    held: Callable[[str], Awaitable[Sequence[str]]]
    renew: Callable[[str], Awaitable[None]]
    release: Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True)
class HttpApp:
    """An ASGI application of a plugin, for HTTP and WebSocket.

    It is mounted at `/plugins/<plugin>/` of `--transport http` and `sse`, behind the server's own checks of host,
    origin and token and within its limits. It gets no lifespan messages.

    An application with `public` paths has pages that people open in a browser. They are served to everybody, so they
    hold no data. Everything else below the mount always needs a token, also where the server has none for agents; the
    host then makes one and shows the address in the terminal. A page posts the token to `login`, and gets a cookie for
    a login that counts in requests of our own pages; a request that is not GET or HEAD then needs the header
    `X-CSRF-Token` with what `scope["state"]["csrf_token"]` has. `logout` ends the login. Both paths are the host's.
    `scope["state"]["answerer"]` is the `Answerer` of the request: only a login of a person is one.

    Attributes:
        app: Makes the application; called in a thread at its first request, so that it may import what it needs.
        public: Paths below the mount, `""` for the mount itself; `folder/` stands for all that begin so.
        beside: A coroutine that runs as long as the server, beside the application; it is cancelled at the end.
        item: Where its pages show an item of the inbox, below the mount; `{id}` stands for its id. Agents whose step
            waits for a person are told this page, and clients open it, as long as it is served.
    """

    app: Callable[[], Any]
    public: tuple[str, ...] = ()
    beside: Callable[[], Awaitable[None]] | None = None
    item: str | None = None


@dataclass(frozen=True)
class PageAddress:
    """The addresses of pages that people open.

    Attributes:
        url: The address.
        with_token: Returns it with the token in its fragment, where the server has made one; else the same as `url`.
            For a terminal alone: its reader can act as the user.
        for_browser: Returns the address for the command line of a browser, which others of the machine can read: the
            address of a file that logs in once and that only the user can read; `url` if several tokens exist, so that
            the login would be ambiguous.
    """

    url: str
    with_token: Callable[[], str]
    for_browser: Callable[[], str]


@dataclass(frozen=True)
class ServedApp:
    """The application of a plugin, for the transport that serves it.

    Attributes:
        plugin: The name of the plugin, which is part of the address.
        label: The plugin as people know it, for the log: distribution, version and name.
        served_at: Called with the address of its pages and the principals in whose name people can log in to them, if
            anybody can; the context lasts as long as they are served.
    """

    plugin: str
    label: str
    app: HttpApp
    served_at: Callable[[str, Collection[str]], AbstractContextManager[None]] = lambda *_: nullcontext()


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What a transport serves.

    Attributes:
        server: The FastMCP server.
        apps: Returns the applications of plugins; called by transports that serve them.
        refusal: Returns the JSON that answers a message which is not one of JSON-RPC; None for a message.
    """

    server: Any
    apps: Callable[[], Sequence[ServedApp]]
    refusal: Callable[[bytes], str | None]


@dataclass(frozen=True, kw_only=True)
class TransportSpec:
    """A transport of `deepwork serve`, selected by name: `--transport NAME`.

    Attributes:
        about: What its users should know of it, for the help of `--transport`; empty if there is nothing.
        open: Checks the values of its options, and returns what serves until the process is told to end. Called before
            the server is built.
        options: Its options of `deepwork serve`, beside those of all transports. Transports may share one.
        needless: The parameters of options that may also be given, without effect, where another transport is chosen.
        serve_apps: Serves the applications of plugins without MCP, for `deepwork.server.apps`; None if it cannot.
    """

    name: str
    open: Callable[[Mapping[str, Any]], Callable[[Serving], None]]
    about: str = ""
    options: Sequence[Option] = ()
    needless: Sequence[str] = ()
    serve_apps: Callable[..., None] | None = None


@dataclass(frozen=True)
class InitialProject:
    """The project that `deepwork init` has prepared.

    Attributes:
        root: Its folder.
        prompt: What the user can ask an agent first, in quotation marks.
    """

    root: Path
    prompt: str


@dataclass(frozen=True, kw_only=True)
class InitStep:
    """A step of `deepwork init`, after the project's files are written.

    Attributes:
        open: Checks the values of its options, and returns what does the step and gives the exit code. Called before
            anything is written.
        options: Its options of `deepwork init`.
        tells_next: Whether it tells the user what to do next, with the prompt. Otherwise `deepwork init` does.
    """

    name: str
    open: Callable[[Mapping[str, Any]], Callable[[InitialProject], int]]
    options: Sequence[Option] = ()
    tells_next: bool = False
