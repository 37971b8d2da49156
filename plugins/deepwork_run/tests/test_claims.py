"""What agents hold of shared work lives as long as the run, and is given away at a limit that is not waited for."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from acting import hangs, until, works

from deepwork.errors import StorageError
from deepwork.ports.agent import Limited
from deepwork.ports.records import ClaimKeeper
from deepwork_run.options import OnLimit
from deepwork_run.prompts import MAX_HELD, prompt_of

pytestmark = pytest.mark.anyio


@dataclass
class Keeper:
    """Writes down what it is asked for."""

    lines: list = field(default_factory=list)
    renewed: list = field(default_factory=list)
    released: list = field(default_factory=list)
    is_broken: bool = False

    def record(self, seconds=1000.0):
        async def held(session_id):
            self.check()
            return self.lines

        async def renew(session_id):
            self.renewed.append(session_id)
            self.check()

        async def release(session_id, reason):
            self.check()
            self.released.append((session_id, reason))

        return ClaimKeeper(name="tasks", seconds=seconds, held=held, renew=renew, release=release)

    def check(self):
        if self.is_broken:
            raise StorageError("the database is away")


def later():
    return works(1, Limited(datetime.now(UTC) + timedelta(hours=1)))


async def test_claims_are_given_away_at_a_limit_that_is_not_waited_for(runs):
    keeper = Keeper()
    run = await runs.run({"one": [later()]}, claims=[keeper.record()], on_limit=OnLimit.RELEASE)
    assert run.code == 7
    [(session_id, reason)] = keeper.released
    assert session_id == run.session_id
    assert reason.startswith("one may go on at ")


async def test_a_run_that_ends_without_waiting_keeps_its_claims(runs):
    keeper = Keeper()
    run = await runs.run({"one": [later()]}, claims=[keeper.record()], waits=False)
    assert (run.code, keeper.released) == (7, [])


async def test_claims_are_renewed_while_an_agent_works_and_while_a_limit_is_waited_for(runs):
    for act in (hangs, later()):
        keeper = Keeper()
        async with (
            runs.opened({"one": [act]}, claims=[keeper.record(0.01)]) as opened,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(opened.runner.run)
            await until(lambda opened=opened: _worked(opened))
            before = len(keeper.renewed)
            await until(lambda keeper=keeper, before=before: _is_longer(keeper.renewed, before + 2))
            tasks.cancel_scope.cancel()
        assert {*keeper.renewed} == {opened.session_id}


async def _worked(opened):
    return opened.record.read().workers


async def _is_longer(items, length):
    return len(items) > length


async def test_the_next_agent_is_told_what_the_one_before_holds(runs):
    keeper = Keeper(["task tk_1 as agent ag_1\nand a second line"])
    run = await runs.run({"one": [works(1), works(3)]}, claims=[keeper.record()])
    prompts = [task.prompt for task in run.agents["one"].tasks]
    assert all("- task tk_1 as agent ag_1 and a second line" in prompt for prompt in prompts)


async def test_a_database_that_is_away_ends_no_run(runs, capsys):
    keeper = Keeper(is_broken=True)
    run = await runs.run({"one": [later()]}, claims=[keeper.record(0.01)], on_limit=OnLimit.RELEASE)
    assert run.code == 7
    assert "are not given away: the database is away" in capsys.readouterr().err


async def test_an_interruption_while_an_agent_is_prepared_starts_none(runs):
    class Interrupting(Keeper):
        def record(self, seconds=1000.0):
            async def held(session_id):
                os.kill(os.getpid(), signal.SIGTERM)
                await anyio.sleep(0.2)
                return []

            return replace(super().record(seconds), held=held)

    run = await runs.run({"one": [hangs]}, claims=[Interrupting().record()])
    assert (run.code, run.starts) == (130, [])


def test_a_prompt_names_a_few_claims_and_counts_the_others():
    prompt = prompt_of("s1", "where it stands", [f"task {number}" for number in range(MAX_HELD + 3)])
    assert f"- task {MAX_HELD - 1}\n- 3 more" in prompt
