"""The runner: starts one agent after the other until the session says that it is complete.

The only truth about the work is the session. What an agent says of itself decides nothing; how its program ends only
says whether to wait before the next one is started.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from enum import IntEnum

import anyio
from anyio import to_thread

from deepwork.api import Session, SessionStatus, ToolCall
from deepwork.errors import DeepWorkError, StateError, UnknownSession
from deepwork.ports.agent import (
    NAME_VARIABLE,
    SESSION_VARIABLE,
    Agent,
    AgentEvent,
    AgentSpec,
    AgentTask,
    Called,
    Ended,
    Failed,
    FailureKind,
    Limited,
    Spent,
)
from deepwork.programs.marked import end_marked
from deepwork.project.opened import OpenedProject
from deepwork.sessions.standing import calls_of, standing_of
from deepwork.text import one_line
from deepwork_run.claims import Claims
from deepwork_run.display import Display, duration, shown
from deepwork_run.limits import limits_of, wait_to_show, waiting
from deepwork_run.options import OnLimit, Options
from deepwork_run.prompts import prompt_of
from deepwork_run.record import CONTINUE, Record, remove_old_transcripts
from deepwork_run.worker import Worker

# So many agents of one kind in a row that change nothing.
MAX_IDLE = 3
FORCE_SECONDS = 10.0
LOOK_SECONDS = 2.0
# A clock may be set, and a machine may sleep, so hours are not waited for in one piece.
LONG_LOOK_SECONDS = 30.0
TICK_SECONDS = 1.0
NEAR = 0.8
# The inbox is looked at each second; nobody else may be there to tell people why a run has ended.
NOTIFY_SECONDS = 4.0


# By name.
Agents = Mapping[str, tuple[AgentSpec, Agent]]


class Exit(IntEnum):
    """How a run has ended."""

    COMPLETE = 0
    ERROR = 1
    PERSON = 4
    BUDGET = 5
    NO_PROGRESS = 6
    LIMIT = 7
    ABORTED = 8
    INTERRUPTED = 130


_EXITS = {"budget": Exit.BUDGET, "time": Exit.BUDGET, "no-progress": Exit.NO_PROGRESS, "login": Exit.PERSON}

# After these something waits for a person.
_TOLD = (Exit.PERSON, Exit.BUDGET, Exit.NO_PROGRESS, Exit.LIMIT)


class Runner:
    """Goes on with the session of a record, by agents in the order in which they are chosen."""

    def __init__(
        self, project: OpenedProject, record: Record, agents: Agents, options: Options, display: Display
    ) -> None:
        self._project = project
        self._session_id = record.session_id
        self._agents = agents
        self._options = options
        self._record = record
        self._display = display
        self._claims = Claims(project, record.session_id, display)
        self._run = record.read()
        self._current = next(iter(agents))
        self._without_login: set[str] = set()
        self._idle: dict[str, int] = {}
        self._worker: Worker | None = None
        self._interrupted = anyio.Event()
        self._started = time.monotonic()
        self._time_grants = 0
        self._told: set[str] = set()
        self._is_notifying = False
        self._stamp = (0, 0)

    async def run(self) -> int:
        """Go on until the session is complete, or nothing more can be done, and return the exit code.

        Raises:
            DeepWorkError: Another process runs this session, or the store fails.
        """
        with self._record.locked():
            await to_thread.run_sync(remove_old_transcripts, self._project.context.workspace)
            self._add("run", options=self._written_options())
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._hear_signals)
                    tasks.start_soon(self._watch)
                    tasks.start_soon(self._heed_pauses)
                    tasks.start_soon(self._notify)
                    tasks.start_soon(self._claims.keep)
                    code = await self._work()
                    if self._is_notifying and code in _TOLD:
                        await self._pause(NOTIFY_SECONDS)
                    tasks.cancel_scope.cancel()
            except* DeepWorkError as errors:
                self._add("ended", exit_code=int(Exit.ERROR))
                raise errors.exceptions[0] from None
            finally:
                self._display.clear()
            self._add("ended", exit_code=int(code))
            return int(code)

    # The loop

    async def _work(self) -> Exit:
        while True:
            session = await self._session()
            if session.status is SessionStatus.COMPLETED:
                return Exit.COMPLETE
            if not session.is_active:
                self._display.log(f"The session was aborted: {one_line(session.abort_reason or '')}")
                return Exit.ABORTED
            if self._interrupted.is_set():
                return Exit.INTERRUPTED
            if wait := _wait_for_person(session):
                self._tell(wait)
                if not self._options.waits:
                    return Exit.PERSON
                await self._pause(LOOK_SECONDS)
                continue
            if self._run.is_asking:
                code = await self._asked()
            elif cause := self._exhausted():
                code = self._ask(*cause)
            else:
                code = await self._go_on(session)
            if code is not None:
                return code

    async def _go_on(self, session: Session) -> Exit | None:
        """Start the next agent, or wait for the first that may be started again."""
        usable = [name for name in self._agents if name not in self._without_login]
        if not usable:
            names = " and ".join(self._agents)
            return self._ask("login", f"{names} cannot work: no login, or no credit. Log in, then let the run go on.")
        moving = [name for name in usable if self._idle.get(name, 0) < MAX_IDLE]
        if not moving:
            return self._ask(
                "no-progress",
                f"{MAX_IDLE} agents in a row have ended without a call that changed anything, of {', '.join(usable)}.",
            )
        if self._current not in moving:
            self._current = moving[0]
        limits = limits_of(session)
        if self._current in limits and self._options.on_limit is OnLimit.SWITCH:
            self._current = min(moving, key=lambda name: limits.get(name, datetime.min.replace(tzinfo=UTC)))
        until = limits.get(self._current)
        if until is None:
            await self._work_once(session)
            return None
        if wait := wait_to_show(session, self._current):
            await self._project.engine.wait(self._session_id, wait)
        self._tell(f"{self._current} may go on at {shown(until)}.")
        if self._options.on_limit is OnLimit.RELEASE:
            await self._claims.release(f"{self._current} may go on at {until.isoformat()} only")
            return Exit.LIMIT
        if not self._options.waits:
            return Exit.LIMIT
        left = self._max_seconds - (time.monotonic() - self._started)
        await self._pause(min(LONG_LOOK_SECONDS, left, (until - datetime.now(UTC)).total_seconds()))
        return None

    async def _work_once(self, session: Session) -> None:
        """Have one agent work, and take down what comes of it."""
        name, before = self._current, calls_of(session)
        await to_thread.run_sync(end_marked, SESSION_VARIABLE, self._session_id)
        spec, agent = self._agents[name]
        number = max((worker.number for worker in self._run.workers), default=0) + 1
        with self._record.transcript(number) as transcript:
            task = await self._task(session, name, transcript.keep)
            if self._interrupted.is_set():
                return  # the signal came while the agent was prepared, and has ended nothing
            worker = Worker(number, name, anyio.CancelScope(), task, session.current_step_id)
            self._add("worker", number=number, agent=name, hooks=spec.has_hooks, step_id=session.current_step_id)
            self._display.log(f"{name} works on step {session.current_step_id!r}")
            self._worker = worker
            try:
                with worker.scope:
                    async with aclosing(agent.start(task)) as events:
                        async for event in events:
                            await self._take(worker, event)
            except DeepWorkError:
                raise
            except Exception as error:  # noqa: BLE001 - the agent is code of a plugin
                worker.failure = Failed(f"{type(error).__name__}: {error}")
            finally:
                self._worker = None
        await to_thread.run_sync(end_marked, SESSION_VARIABLE, self._session_id)
        session = await self._session()
        made = calls_of(session) - before
        self._add("worker_ended", number=worker.number, end=worker.how_ended, calls=made)
        self._display.log(f"{name} has ended: {worker.how_ended}")
        await self._judge(session, worker, made)

    async def _judge(self, session: Session, worker: Worker, made: int) -> None:
        """Decide what follows for the next agent."""
        if made:
            self._idle[worker.name] = 0
        if worker.limit and session.is_active:
            await self._project.engine.wait(self._session_id, waiting(session, worker.name, worker.limit))
            return
        if worker.failure and worker.failure.kind is FailureKind.LOGIN:
            self._without_login.add(worker.name)
        elif not made and not worker.is_ending:
            self._idle[worker.name] = self._idle.get(worker.name, 0) + 1

    async def _task(self, session: Session, name: str, keep: Callable[[bytes], None]) -> AgentTask:
        """Return what the next agent has to know."""
        call = ToolCall(principal=session.principal)
        is_first = not self._run.workers and all(entry.kind in ("started", "step_begun") for entry in session.history)
        resume = None if is_first else await self._project.engine.resume_text(call, self._session_id)
        context = self._project.context
        program = [sys.executable, "-P", "-m", "deepwork"]
        root = str(context.project_root)
        return AgentTask(
            session_id=self._session_id,
            prompt=prompt_of(self._session_id, resume, await self._claims.held()),
            project_root=context.project_root,
            server=(*program, "serve", "--path", root),
            hook=(*program, "hook", "--path", root),
            environment=context.environment,
            marks={SESSION_VARIABLE: self._session_id, NAME_VARIABLE: name},
            allow=self._options.allow,
            budget_usd=self._left(),
            keep=keep,
        )

    async def _take(self, worker: Worker, event: AgentEvent) -> None:
        match event:
            case Called(call_id=call_id, is_done=is_done):
                (worker.open_calls.discard if is_done else worker.open_calls.add)(call_id)
                if is_done:
                    with suppress(StateError):
                        worker.step_id = (await self._session()).current_step_id
                if worker.is_ending and not worker.open_calls:
                    self._end(worker)
            case Spent():
                self._spend(worker, event)
            case Limited():
                worker.limit = event
            case Failed():
                worker.failure = event
            case Ended(exit_code):
                worker.exit_code = exit_code

    # Money and time

    def _spend(self, worker: Worker, spent: Spent) -> None:
        before = self._cost
        known = self._run.spent.get((worker.name, spent.record_id))
        values = (spent.input_tokens, spent.output_tokens, spent.cost_usd)
        if known and (known["input_tokens"], known["output_tokens"], known["cost_usd"]) == values:
            return
        self._add(
            "spent",
            id=spent.record_id,
            worker=known["worker"] if known else worker.number,
            agent=worker.name,
            step_id=known["step_id"] if known else worker.step_id,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cost_usd=spent.cost_usd,
        )
        limit, cost = self._budget, self._cost
        if limit is not None and cost >= limit:
            worker.is_ending = True
            worker.end = "the budget is spent"
            worker.scope.cancel()
        elif limit is not None and before < NEAR * limit <= cost:
            self._near(f"${cost:.2f} of ${limit:.2f} are spent")

    @property
    def _cost(self) -> float:
        return self._run.totals()["cost_usd"] or 0.0

    @property
    def _budget(self) -> float | None:
        limit = self._options.budget_usd
        return None if limit is None else limit * (1 + self._run.grants)

    @property
    def _max_seconds(self) -> float:
        return (self._options.max_seconds or math.inf) * (1 + self._time_grants)

    def _left(self) -> float | None:
        """Return what the next agent may spend."""
        limit = self._budget
        return None if limit is None else max(0.0, limit - self._cost)

    def _exhausted(self) -> tuple[str, str] | None:
        cost, limit = self._cost, self._budget
        if limit is not None and cost >= limit:
            return "budget", f"The session has cost ${cost:.2f}; the budget is ${limit:.2f}."
        if time.monotonic() - self._started >= self._max_seconds:
            return "time", f"The run has taken {duration(self._max_seconds)}, which is all that it may take."
        return None

    def _near(self, what: str) -> None:
        self._add("notice", what=what)
        self._display.log(what)

    # People

    def _ask(self, kind: str, what: str) -> Exit | None:
        """Ask a person whether to go on; None if they are waited for."""
        self._add("paused", cause=kind, what=what)
        self._stamp = self._record.stamp()
        self._display.log(f"{what} `deepwork inbox` lets it go on.")
        return None if self._options.waits else _EXITS[kind]

    async def _asked(self) -> Exit | None:
        """Look for the answer of a person."""
        await self._pause(LOOK_SECONDS)
        if self._stamp == self._record.stamp():
            return None
        self._stamp = self._record.stamp()
        self._run = self._record.read()
        pause = self._run.pause
        if pause is None or pause.answer is None:
            return None
        if pause.answer != CONTINUE:
            return _EXITS[pause.kind]
        self._time_grants += pause.kind == "time"
        self._without_login.clear()
        self._idle.clear()
        return None

    # What happens besides

    async def _hear_signals(self) -> None:
        """Let the agent finish its call at the first signal, and end it at the second."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                worker = self._worker
                if self._interrupted.is_set():
                    if worker:
                        worker.is_ending = True
                        worker.scope.cancel()
                    continue
                self._interrupted.set()
                if worker:
                    self._end_after_call(worker, "; interrupt again to end it at once")

    async def _heed_pauses(self) -> None:
        """Have the agent end once a person has paused the session: it would wait, and nobody tells it to go on."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            worker = self._worker
            if worker is None or worker.is_ending:
                continue
            with suppress(DeepWorkError):  # a store that fails is met again by the loop
                if standing_of(await self._session()).paused:
                    worker.end = "a person has paused the session"
                    self._end_after_call(worker)

    def _end_after_call(self, worker: Worker, more: str = "") -> None:
        """Let the agent finish the call that it makes, and end it then."""
        worker.is_ending = True
        if worker.open_calls:
            self._display.log(f"The agent finishes its call{more}.")
        else:
            self._end(worker)

    def _end(self, worker: Worker) -> None:
        """Ask the agent to come to an end, and end it by force after ten seconds."""
        worker.is_ending = True
        if not worker.task.stop.is_set():
            worker.task.stop.set()
            worker.scope.deadline = anyio.current_time() + FORCE_SECONDS

    async def _watch(self) -> None:
        """Look at the clock, and draw the live line."""
        is_near = False
        while True:
            elapsed = time.monotonic() - self._started
            if elapsed >= self._max_seconds and self._worker and not self._worker.task.stop.is_set():
                self._worker.end = "the time is over"
                self._end(self._worker)
            if not is_near and elapsed >= NEAR * self._max_seconds:
                is_near = True
                self._near(f"{duration(elapsed)} of {duration(self._max_seconds)} are over")
            self._display.draw(self._run, self._worker.name if self._worker else None, elapsed)
            ahead = [moment - elapsed for moment in (NEAR * self._max_seconds, self._max_seconds) if moment > elapsed]
            # An agent may be started a moment after the time is over.
            usual = TICK_SECONDS if self._display.is_live or not ahead else 10 * TICK_SECONDS
            await anyio.sleep(min([usual, *ahead]))

    async def _notify(self) -> None:
        """Send the notifications that the user has configured."""
        self._is_notifying = True
        try:
            await self._project.context.inbox().notify()
        except DeepWorkError as error:
            self._display.log(f"No notifications are sent: {error.message}")
        self._is_notifying = False

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until an interruption."""
        with anyio.move_on_after(seconds):
            await self._interrupted.wait()

    async def _session(self) -> Session:
        """Read the session.

        Raises:
            UnknownSession: It has gone.
        """
        session = await (await self._project.engine.sessions.store()).load(self._session_id)
        if session is None:
            raise UnknownSession(f"Session {self._session_id!r} has gone while it was worked on")
        self._display.session = session
        return session

    def _add(self, kind: str, **event: object) -> None:
        added = self._record.add(kind, **event)
        if kind == "run":
            self._run = self._record.read()
        else:
            self._run.take(added)

    def _tell(self, text: str) -> None:
        """Tell something once."""
        if text not in self._told:
            self._told.add(text)
            self._display.log(text)

    def _written_options(self) -> dict[str, object]:
        options = self._options
        return {
            "with": [*options.agents],
            "allow": sorted(options.allow),
            "max_seconds": options.max_seconds,
            "budget_usd": options.budget_usd,
            "on_limit": options.on_limit.value,
            "pid": os.getpid(),
        }


def _wait_for_person(session: Session) -> str:
    """Return what a session needs a person for before an agent can go on; nothing if one can."""
    standing = standing_of(session)
    if standing.paused:
        return f"A person has paused the session: {standing.paused}. deepwork sessions unpause {session.session_id}"
    if standing.waits:
        steps = ", ".join(wait.step_id for wait in standing.waits)
        return f"Step {steps} waits for a person: `deepwork inbox` shows why."
    return ""
