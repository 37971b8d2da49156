"""What every agent has to do, shown with a scripted CLI in the place of its program."""

from __future__ import annotations

import json
import os
import signal
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from deepwork.ports.agent import (
    Agent,
    AgentEvent,
    AgentTask,
    Called,
    Ended,
    Failed,
    FailureKind,
    LimitCause,
    Limited,
    Said,
    Spent,
)
from deepwork.testing.contracts.contract import Contract
from deepwork.testing.wire import PATIENCE

HUGE = 20 * 1024 * 1024
MARK = "MARK_OF_THE_RUN"

# Plays a script. It is run by Python without our packages, as the program of a vendor would be.
_PLAYER = """\
import json, os, subprocess, sys, time
script = json.load(open(__file__ + ".json"))
with open(__file__ + ".calls", "a") as calls:
    calls.write(json.dumps({"arguments": sys.argv[1:], "stdin": sys.stdin.read(), "environment": dict(os.environ)}))
    calls.write("\\n")
with open(__file__ + ".pids", "a") as pids:
    pids.write(f"{os.getpid()}\\n")
    if script["leaves_child"]:
        child = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"], start_new_session=True)
        pids.write(f"{child.pid}\\n")
for line in script["lines"]:
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()
if script["huge"]:
    sys.stdout.write("x" * script["huge"] + "\\n")
if script["cut"]:
    sys.stdout.write(script["cut"])
sys.stdout.flush()
sys.stderr.write(script["stderr"])
sys.stderr.flush()
if script["hangs"]:
    time.sleep(600)
os._exit(script["exit_code"]) if script["exit_code"] >= 0 else os.kill(os.getpid(), -script["exit_code"])
"""


@dataclass(frozen=True)
class CliScript:
    """What the scripted CLI does.

    Attributes:
        lines: What it prints, a line each.
        exit_code: How it ends; negative for a signal.
        stderr: What it prints there.
        cut: The beginning of a line, after which its output ends.
        huge: So many bytes of one more line without meaning.
        hangs: Whether it never ends by itself.
        leaves_child: Whether it starts a process that has a session of its own, and outlives it.
    """

    lines: tuple[str, ...] = ()
    exit_code: int = 0
    stderr: str = ""
    cut: str = ""
    huge: int = 0
    hangs: bool = False
    leaves_child: bool = False


class ScriptedCli:
    """A program that plays a script.

    Attributes:
        program: Where it is.
    """

    def __init__(self, folder: Path, name: str = "cli") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.program = folder / name
        self.program.write_text(f"#!{sys.executable} -IS\n{_PLAYER}", encoding="utf-8")
        self.program.chmod(0o755)
        self.plays(CliScript())

    def plays(self, script: CliScript) -> None:
        """Play this from now on."""
        Path(f"{self.program}.json").write_text(json.dumps(asdict(script)), encoding="utf-8")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """How it was called: `arguments`, `stdin` and `environment` of each time."""
        return [json.loads(line) for line in self._text("calls").splitlines()]

    def survivors(self) -> list[int]:
        """Return the processes of the agent, and its descendants, that still run."""
        return [pid for pid in map(int, self._text("pids").split()) if _lives(pid)]

    def _text(self, name: str) -> str:
        with suppress(FileNotFoundError):
            return Path(f"{self.program}.{name}").read_text(encoding="utf-8")
        return ""


class AgentContract(Contract):
    """Override `make_agent` and `lines_of`; override `spending` if your program says what it uses.

    `lines_of(situation)` returns what your program prints, recorded from a real one, in these situations: `done`, in
    which it says something, announces a call and has its result; `usage-limit`, `usage-limit-until` with a time some
    hours ahead, `overload`, `network`, `login`, `context`, `unknown-error`; and `talk`, in which it is done, and its
    agent has said the words of the limit. A situation that your program cannot be in is None.
    """

    @pytest.fixture
    def cli(self, tmp_path: Path) -> Iterator[ScriptedCli]:
        """The program in the place of yours; what it has left is ended after the test."""
        cli = ScriptedCli(tmp_path / "programs")
        yield cli
        for pid in cli.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @pytest.fixture
    def make_agent(self) -> Callable[[str], Any]:
        """Return a function that makes your agent with the path of its program."""
        raise NotImplementedError("override the fixture `make_agent`")

    @pytest.fixture
    def agent(self, make_agent: Callable[[str], Agent], cli: ScriptedCli) -> Agent:
        """The agent to test."""
        return make_agent(str(cli.program))

    @pytest.fixture
    def task(self, tmp_path: Path) -> AgentTask:
        """What it is to work on."""
        root = tmp_path / "worked-on"
        root.mkdir()
        return AgentTask(
            session_id="s1",
            prompt="Go on with s1",
            project_root=root,
            server=(sys.executable, "-c", "pass"),
            hook=(sys.executable, "-c", "pass"),
            environment={**os.environ, "A_SECRET_OF_THE_USER": "hidden"},
            marks={MARK: "s1"},
        )

    @abstractmethod
    def lines_of(self, situation: str) -> Sequence[str] | None:
        """Return what the program prints in a situation."""

    def spending(self) -> Mapping[str, tuple[Sequence[str], tuple[int, int, float | None]]]:
        """Return what the program prints, and tokens read, tokens written and dollars, by a name for each case."""
        return {}

    async def test_it_is_available_with_its_program(self, agent: Agent) -> None:
        assert await agent.available() is None

    async def test_it_says_why_it_is_not_available_without(self, make_agent: Callable[[str], Agent]) -> None:
        reason = await make_agent("/nowhere/no-such-program").available()
        assert isinstance(reason, str)
        assert reason.strip()

    async def test_a_missing_program_is_a_failure(self, make_agent: Callable[[str], Agent], task: AgentTask) -> None:
        events = await _events(make_agent("/nowhere/no-such-program"), task)
        assert _kinds(events) == [Failed, Ended]

    async def test_it_tells_what_happens_and_ends(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        cli.plays(CliScript(self._lines("done")))
        events = await _events(agent, task)
        assert events[-1] == Ended(0)
        assert [event for event in events if isinstance(event, Limited | Failed)] == []
        assert any(isinstance(event, Said) and event.text for event in events)
        announced = [event.call_id for event in events if isinstance(event, Called) and not event.is_done]
        done = [event.call_id for event in events if isinstance(event, Called) and event.is_done]
        assert announced
        assert announced == done

    async def test_the_prompt_is_for_no_other_process_to_see(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask
    ) -> None:
        """Everybody on the machine can read the arguments of a process."""
        cli.plays(CliScript(self._lines("done")))
        await _events(agent, task)
        [call] = cli.calls
        assert task.prompt in call["stdin"]
        assert not any(task.prompt in argument for argument in call["arguments"])

    async def test_its_program_sees_no_other_variables_of_the_user(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask
    ) -> None:
        cli.plays(CliScript(self._lines("done")))
        await _events(agent, task)
        environment = cli.calls[0]["environment"]
        assert "A_SECRET_OF_THE_USER" not in environment
        assert environment[MARK] == "s1"

    async def test_it_writes_nothing_into_the_project(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        cli.plays(CliScript(self._lines("done")))
        await _events(agent, task)
        assert list(task.project_root.iterdir()) == []

    @pytest.mark.parametrize(
        ("situation", "cause"),
        [
            ("usage-limit", LimitCause.USAGE),
            ("usage-limit-until", LimitCause.USAGE),
            ("overload", LimitCause.OVERLOAD),
            ("network", LimitCause.NETWORK),
        ],
    )
    async def test_a_limit_is_told_with_its_cause(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask, situation: str, cause: LimitCause
    ) -> None:
        cli.plays(CliScript(self._lines(situation), exit_code=1))
        events = await _events(agent, task)
        assert [event.cause for event in events if isinstance(event, Limited)] == [cause]
        assert not any(isinstance(event, Failed) for event in events)
        assert events[-1] == Ended(1)

    async def test_the_end_of_a_limit_is_told_if_the_program_names_it(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask
    ) -> None:
        cli.plays(CliScript(self._lines("usage-limit-until"), exit_code=1))
        [until] = [event.until for event in await _events(agent, task) if isinstance(event, Limited)]
        assert until is not None
        assert datetime.now(UTC) < until < datetime.now(UTC) + timedelta(days=8)

    @pytest.mark.parametrize(
        ("situation", "kind"),
        [
            ("login", FailureKind.LOGIN),
            ("context", FailureKind.CONTEXT),
            ("unknown-error", FailureKind.OTHER),
        ],
    )
    async def test_a_failure_is_told_with_its_kind(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask, situation: str, kind: FailureKind
    ) -> None:
        cli.plays(CliScript(self._lines(situation), exit_code=1))
        events = await _events(agent, task)
        assert [event.kind for event in events if isinstance(event, Failed)] == [kind]
        assert not any(isinstance(event, Limited) for event in events)

    async def test_words_of_a_limit_are_none(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        """An agent may write about limits."""
        cli.plays(CliScript(self._lines("talk")))
        events = await _events(agent, task)
        assert [event for event in events if isinstance(event, Limited | Failed)] == []

    async def test_every_token_is_counted_once(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        """A later record of an id replaces the earlier one; they add up to what the program says."""
        cases = self.spending()
        if not cases:
            pytest.skip("`spending` is not overridden")
        for name, (lines, expected) in cases.items():
            cli.plays(CliScript(tuple(lines)))
            records = {event.record_id: event for event in await _events(agent, task) if isinstance(event, Spent)}
            costs = [event.cost_usd for event in records.values() if event.cost_usd is not None]
            told = (
                sum(event.input_tokens for event in records.values()),
                sum(event.output_tokens for event in records.values()),
                sum(costs) if costs else None,
            )
            assert told == pytest.approx(expected), name

    @pytest.mark.parametrize("exit_code", [3, 139, -9])
    async def test_a_program_that_breaks_off_has_failed(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask, exit_code: int
    ) -> None:
        cli.plays(CliScript(exit_code=exit_code, stderr="it went wrong"))
        events = await _events(agent, task)
        assert _kinds(events) == [Failed, Ended]
        assert events[-1] == Ended(exit_code)

    async def test_a_stream_that_is_cut_is_a_failure(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        lines = self._lines("done")
        cli.plays(CliScript(lines[: len(lines) // 2], cut=lines[-1][: len(lines[-1]) // 2], exit_code=1))
        events = await _events(agent, task)
        assert [type(event) for event in events if isinstance(event, Failed | Limited)] == [Failed]
        assert events[-1] == Ended(1)

    async def test_what_is_no_message_is_passed_over(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        nonsense = ("", "not JSON", "[]", "null", "7", '{"type": 7}', '{"type": ["result"]}', "[" * 100_000, '{"a": ')
        cli.plays(CliScript((*nonsense, *self._lines("done"))))
        events = await _events(agent, task)
        assert events[-1] == Ended(0)
        assert not any(isinstance(event, Failed | Limited) for event in events)

    async def test_a_huge_line_is_survived(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        cli.plays(CliScript(self._lines("done"), huge=HUGE))
        assert (await _events(agent, task))[-1] == Ended(0)

    async def test_what_it_prints_is_kept(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        kept: list[bytes] = []
        cli.plays(CliScript(self._lines("done")))
        await _events(agent, _with(task, keep=kept.append))
        assert kept == [line.encode() for line in self._lines("done")]

    async def test_closing_it_ends_all_that_it_has_started(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask
    ) -> None:
        cli.plays(CliScript(self._lines("done"), hangs=True, leaves_child=True))
        with anyio.fail_after(PATIENCE):
            async with aclosing(agent.start(task)) as events:
                async for event in events:
                    if isinstance(event, Said):
                        break
        assert cli.survivors() == []

    async def test_cancelling_it_does_so_too(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        cli.plays(CliScript(hangs=True, leaves_child=True))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_events, agent, task)
            with anyio.fail_after(PATIENCE):
                while not cli.survivors():  # noqa: ASYNC110 - it is another process
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        assert cli.survivors() == []

    async def test_it_comes_to_an_end_when_it_is_asked_to(
        self, agent: Agent, cli: ScriptedCli, task: AgentTask
    ) -> None:
        cli.plays(CliScript(self._lines("done")[:1], hangs=True))
        task.stop.set()
        events = await _events(agent, task)
        assert isinstance(events[-1], Ended)
        assert not any(isinstance(event, Limited | Failed) for event in events)
        assert cli.survivors() == []

    async def test_it_works_again_and_again(self, agent: Agent, cli: ScriptedCli, task: AgentTask) -> None:
        for situation, last in (("unknown-error", Ended(1)), ("done", Ended(0)), ("usage-limit", Ended(1))):
            cli.plays(CliScript(self._lines(situation), exit_code=last.exit_code))
            assert (await _events(agent, task))[-1] == last

    def _lines(self, situation: str) -> tuple[str, ...]:
        lines = self.lines_of(situation)
        if lines is None:
            pytest.skip(f"the program cannot be in the situation {situation!r}")
        return tuple(lines)


async def _events(agent: Agent, task: AgentTask) -> list[AgentEvent]:
    with anyio.fail_after(PATIENCE):
        async with aclosing(agent.start(task)) as events:
            return [event async for event in events]


def _kinds(events: Sequence[AgentEvent]) -> list[type]:
    return [type(event) for event in events]


def _with(task: AgentTask, **changes: Any) -> AgentTask:
    return replace(task, **changes)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
