"""Agents that each do one thing wrong, named with the one test that has to notice."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from subprocess import DEVNULL, PIPE, Popen

import anyio
import pytest

from deepwork.api import allowed_environment
from deepwork.errors import ProgramMissing
from deepwork.ports.agent import Agent, Called, Ended, Failed, FailureKind, LimitCause, Limited, Said, Spent
from deepwork.programs.processes import running_program
from deepwork.testing import AgentContract

CAUSES = {"usage-limit": "USAGE", "usage-limit-until": "USAGE", "overload": "OVERLOAD", "network": "NETWORK"}
WORDS = "usage limit reached"


class GoodAgent(Agent):
    """Does everything right; the others change one part of it."""

    breaks = None

    def __init__(self, program):
        self.program = program
        self.works = 0

    async def available(self):
        try:
            with open(self.program):
                return None
        except OSError as error:
            return f"{self.program} is missing: {error.strerror}"

    def environment(self, task):
        return {**allowed_environment(task.environment), **task.marks}

    def arguments(self, task):
        return [self.program]

    def running(self, task):
        return running_program(
            self.arguments(task),
            cwd=task.project_root,
            environment=self.environment(task),
            stdin=task.prompt.encode(),
            project=task.project_root,
        )

    def limit(self, text):
        return 8 * 1024 * 1024

    async def start(self, task):
        has_ended = False
        try:
            async with self.running(task) as program:
                async for line in program.lines(8 * 1024 * 1024, task.stop):
                    self.keep(task, line)
                    for event in self.events(self.read(line)):
                        has_ended = has_ended or isinstance(event, Limited | Failed)
                        yield event
                    has_ended = has_ended or "end" in self.read(line)
                code = await program.ended()
            if not has_ended and not task.stop.is_set():
                yield Failed("broken off")
        except ProgramMissing as error:
            yield Failed(error.message)
            code = 127
        yield Ended(code)

    def keep(self, task, line):
        task.keep(line)

    def read(self, line):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return {}
        return message if isinstance(message, dict) else {}

    def events(self, message):
        for name in message:
            if name == "said":
                yield Said(message["said"])
            elif name == "call":
                yield Called("tool", message["call"])
            elif name == "result":
                yield self.result(message["result"])
            elif name == "spent":
                yield self.spent(*message["spent"])
            elif name == "limit":
                until = message.get("until")
                yield self.limited(message["limit"], until and datetime.fromisoformat(until))
            elif name == "failed":
                yield self.failed(message["failed"])

    def result(self, call_id):
        return Called("tool", call_id, is_done=True)

    def spent(self, record_id, *used):
        return Spent(record_id, *used)

    def limited(self, cause, until):
        return Limited(until, LimitCause[cause])

    def failed(self, kind):
        return Failed("it went wrong", FailureKind[kind])


class AsksForALogin(GoodAgent):
    breaks = "test_it_is_available_with_its_program"

    async def available(self):
        return await super().available() or "log in first"


class IsAlwaysThere(GoodAgent):
    breaks = "test_it_says_why_it_is_not_available_without"

    async def available(self):
        return None


class RaisesWithoutItsProgram(GoodAgent):
    breaks = "test_a_missing_program_is_a_failure"

    async def start(self, task):
        with open(self.program):
            pass
        async for event in super().start(task):
            yield event


class NeverHasAResult(GoodAgent):
    breaks = "test_it_tells_what_happens_and_ends"

    def result(self, call_id):
        return Said(call_id)


class ShowsItsPrompt(GoodAgent):
    breaks = "test_the_prompt_is_for_no_other_process_to_see"

    def arguments(self, task):
        return [self.program, task.prompt]


class TellsItsProgramEverything(GoodAgent):
    breaks = "test_its_program_sees_no_other_variables_of_the_user"

    def environment(self, task):
        return {**task.environment, **task.marks}


class WritesAFile(GoodAgent):
    breaks = "test_it_writes_nothing_into_the_project"

    def arguments(self, task):
        (task.project_root / ".mcp.json").write_text("{}")
        return super().arguments(task)


class KnowsOneCause(GoodAgent):
    breaks = "test_a_limit_is_told_with_its_cause"

    def limited(self, cause, until):
        return Limited(until)


class ForgetsTheTime(GoodAgent):
    breaks = "test_the_end_of_a_limit_is_told_if_the_program_names_it"

    def limited(self, cause, until):
        return Limited(None, LimitCause[cause])


class KnowsOneFailure(GoodAgent):
    breaks = "test_a_failure_is_told_with_its_kind"

    def failed(self, kind):
        return Failed("it went wrong")


class BelievesItsModel(GoodAgent):
    breaks = "test_words_of_a_limit_are_none"

    def events(self, message):
        yield from super().events(message)
        if WORDS in str(message.get("said")):
            yield Limited()


class CountsTwice(GoodAgent):
    breaks = "test_every_token_is_counted_once"

    def spent(self, record_id, *used):
        return Spent(f"{record_id}{time.monotonic()}", *used)


class TakesAnyEndForOne(GoodAgent):
    breaks = "test_a_program_that_breaks_off_has_failed"

    async def start(self, task):
        said_something = False
        async for event in super().start(task):
            said_something = said_something or isinstance(event, Said)
            if said_something or not isinstance(event, Failed) or event.text != "broken off":
                yield event


class TakesACutForAnEnd(GoodAgent):
    breaks = "test_a_stream_that_is_cut_is_a_failure"

    async def start(self, task):
        said_something = False
        async for event in super().start(task):
            said_something = said_something or isinstance(event, Said)
            if not said_something or not isinstance(event, Failed) or event.text != "broken off":
                yield event


class ExpectsMessages(GoodAgent):
    breaks = "test_what_is_no_message_is_passed_over"

    def read(self, line):
        return super().read(line) or {"failed": "OTHER"}


class ReadsWhatComes(GoodAgent):
    breaks = "test_a_huge_line_is_survived"

    def read(self, line):
        return {**super().read(line), "failed": "OTHER"} if len(line) > 1_000_000 else super().read(line)

    async def start(self, task):
        try:
            async with self.running(task) as program:
                async for line in program.lines(10**9, task.stop):
                    self.keep(task, line)
                    if len(line) > 1_000_000:
                        raise ValueError("too long")
                    for event in self.events(self.read(line)):
                        yield event
                code = await program.ended()
            if code and not task.stop.is_set() and not self.works:
                yield Failed("broken off")
        except ProgramMissing as error:
            yield Failed(error.message)
            code = 127
        yield Ended(code)


class KeepsNothing(GoodAgent):
    breaks = "test_what_it_prints_is_kept"

    def keep(self, task, line):
        pass


class LeavesItsProgram(GoodAgent):
    breaks = "test_closing_it_ends_all_that_it_has_started"

    async def start(self, task):
        process = Popen([self.program], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=self.environment(task))
        process.stdin.close()
        for line in process.stdout:
            self.keep(task, line.rstrip(b"\n"))
            for event in self.events(self.read(line)):
                yield event
        yield Ended(process.wait())


class LeavesItWhenItIsCancelled(GoodAgent):
    breaks = "test_cancelling_it_does_so_too"

    async def start(self, task):
        with Popen(
            [self.program], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=self.environment(task)
        ) as process:
            process.wait = lambda: 0
            await anyio.sleep_forever()
        yield Ended(0)


class DoesNotStop(GoodAgent):
    breaks = "test_it_comes_to_an_end_when_it_is_asked_to"

    async def start(self, task):
        async for event in super().start(task):
            yield Limited() if task.stop.is_set() and isinstance(event, Ended) else event
            if task.stop.is_set() and isinstance(event, Ended):
                yield event


class WorksOnce(GoodAgent):
    breaks = "test_it_works_again_and_again"

    async def start(self, task):
        self.works += 1
        if self.works > 1:
            yield Ended(99)
            return
        async for event in super().start(task):
            yield event


class Fixtures:
    agent_class: type[GoodAgent]

    @pytest.fixture
    def make_agent(self):
        return self.agent_class

    def lines_of(self, situation):
        end = {"end": True}
        all_messages = [{"said": "I begin"}, {"call": "1"}, {"result": "1"}, {"said": "The end"}, end]
        soon = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
        messages = {
            "done": all_messages,
            "talk": [{"said": WORDS}, end],
            "login": [{"failed": "LOGIN"}],
            "context": [{"failed": "CONTEXT"}],
            "unknown-error": [{"failed": "OTHER"}],
            "usage-limit-until": [{"limit": "USAGE", "until": soon}],
        }
        default = [{"limit": CAUSES.get(situation, "USAGE")}]
        return [json.dumps(message) for message in messages.get(situation, default)]

    def spending(self):
        lines = [{"spent": ["a", 1, 1]}, {"spent": ["a", 2, 3]}, {"spent": ["b", 5, 5, 0.5]}, {"end": True}]
        return {"to the end": ([json.dumps(line) for line in lines], (7, 8, 0.5))}


CONTRACTS = (AgentContract,)
for _agent in [GoodAgent, *GoodAgent.__subclasses__()]:
    globals()[f"Test{_agent.__name__}"] = type(
        f"Test{_agent.__name__}", (Fixtures, *CONTRACTS), {"agent_class": _agent, "breaks": _agent.breaks}
    )
