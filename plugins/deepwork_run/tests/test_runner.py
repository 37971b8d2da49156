"""The loop: the session alone decides what follows when an agent stops."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel
import pytest
from acting import hangs, until, works

from deepwork.api import Answerer, ToolCall, history, open_context, project_at
from deepwork.errors import DeepWorkError
from deepwork.models.history import HistoryEntry
from deepwork.ports.agent import Called, Ended, Failed, FailureKind, LimitCause, Limited, Spent
from deepwork.sessions.standing import standing_of
from deepwork.testing.wire import PATIENCE
from deepwork_run import limits, record
from deepwork_run import runner as runner_module
from deepwork_run.inbox import RunInbox
from deepwork_run.limits import waiting
from deepwork_run.options import OnLimit

pytestmark = pytest.mark.anyio

NOTHING = works(0)


async def value(result):
    return result


async def deepwork(*words):
    command = [sys.executable, "-m", "deepwork", *map(str, words)]
    return (await anyio.run_process(command)).stdout.decode()


def soon(**delta):
    return datetime.now(UTC) + timedelta(**delta)


@pytest.fixture
def quick_waits(monkeypatch):
    """Put the clock of a run forward by what it would wait for a limit, which may be long then and is over at once."""

    class Clock(datetime):
        ahead = timedelta()

        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + cls.ahead

    async def pause(self, seconds):
        Clock.ahead += timedelta(seconds=seconds)
        await anyio.lowlevel.checkpoint()

    for module in (runner_module, limits, record):
        monkeypatch.setattr(module, "datetime", Clock)
    monkeypatch.setattr(runner_module.Runner, "_pause", pause)


async def test_an_agent_that_ends_before_the_session_is_complete_is_followed_by_the_next(runs):
    run = await runs.run({"one": [works(1), works(2), works(1)]})
    assert run.code == 0
    assert run.session.status == "completed"
    assert run.starts == ["one", "one", "one"]
    assert [worker.calls > 0 for worker in run.record.read().workers] == [True] * 3


async def test_the_first_agent_is_told_its_session_and_call_and_the_next_one_where_it_stands(runs):
    run = await runs.run({"one": [works(1), works(3)]})
    first, later = (task.prompt for task in run.agents["one"].tasks)
    call = f'session_id="{run.session_id}", step_id="?"'
    assert call in first
    assert "Instructions for" not in first
    assert call in later
    assert "Instructions for b" in later
    assert "in the working tree as it was" in later


async def test_what_an_agent_says_of_itself_decides_nothing(runs):
    async def boasts(agent, task):
        yield Called("finished_step", "1")
        yield Ended(0)

    run = await runs.run({"one": [boasts, works(4)]})
    assert (run.code, run.starts) == (0, ["one", "one"])


async def test_three_agents_that_change_nothing_hand_over_to_the_next_vendor(runs):
    run = await runs.run({"one": [NOTHING], "two": [works(4)]})
    assert (run.code, run.starts) == (0, ["one", "one", "one", "two"])


async def test_a_call_that_changes_something_begins_the_count_anew(runs):
    acts = [NOTHING, NOTHING, works(1), NOTHING, NOTHING, works(3)]
    run = await runs.run({"one": acts})
    assert (run.code, len(run.starts)) == (0, 6)


async def test_without_progress_and_waiting_the_run_ends_with_an_item_in_the_inbox(runs, project):
    run = await runs.run({"one": [NOTHING]}, waits=False)
    assert (run.code, len(run.starts)) == (6, 3)
    [item] = await RunInbox(open_context("run", project.root)).items()
    assert item.kind == "run-no-progress"
    assert {action.name for action in item.actions} == {"continue", "stop"}
    # Who starts the run again has seen it.
    again = await runs.run({"one": [works(4)]}, run.session_id)
    assert again.code == 0
    assert await RunInbox(open_context("run", project.root)).items() == []


async def test_a_person_lets_a_run_go_on(runs, project, monkeypatch):
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.01)
    async with (
        runs.opened({"one": [NOTHING, NOTHING, NOTHING, works(4)]}) as opened,
        anyio.create_task_group() as tasks,
    ):
        codes = []

        async def run():
            codes.append(await opened.runner.run())

        tasks.start_soon(run)
        inbox = RunInbox(open_context("run", project.root))
        items = await until(inbox.items)
        assert await inbox.answer(items[0].id, "continue", None, None) == "The run goes on"
    assert codes == [0]


async def test_a_person_stops_a_run(runs, project, monkeypatch):
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.01)
    async with runs.opened({"one": [NOTHING]}) as opened, anyio.create_task_group() as tasks:
        codes = []

        async def run():
            codes.append(await opened.runner.run())

        tasks.start_soon(run)
        inbox = RunInbox(open_context("run", project.root))
        items = await until(inbox.items)
        await inbox.answer(items[0].id, "stop", None, None)
    assert codes == [6]


async def test_an_agent_without_a_login_is_not_started_again(runs):
    login = works(0, Failed("Please run /login", FailureKind.LOGIN))
    run = await runs.run({"one": [login], "two": [works(1), works(3)]})
    assert (run.code, run.starts) == (0, ["one", "two", "two"])


async def test_without_any_login_a_person_is_asked(runs, project):
    run = await runs.run({"one": [works(0, Failed("no", FailureKind.LOGIN))]}, waits=False)
    assert (run.code, run.starts) == (4, ["one"])
    [item] = await RunInbox(open_context("run", project.root)).items()
    assert item.kind == "run-login"


async def test_a_full_context_is_no_limit(runs):
    run = await runs.run({"one": [works(1, Failed("full", FailureKind.CONTEXT)), works(3)]})
    assert (run.code, run.starts) == (0, ["one", "one"])
    assert run.history("waiting") == []


async def test_an_agent_that_raises_counts_as_one_that_has_failed(runs):
    async def raises(agent, task):
        yield Called("x", "1")
        raise ValueError("broken")

    run = await runs.run({"one": [raises, works(4)]})
    assert run.code == 0
    assert run.record.read().workers[0].end == "other failure: ValueError: broken"


# Limits


async def test_nothing_is_called_before_the_end_of_a_limit(runs, quick_waits):
    until = soon(hours=1)
    run = await runs.run({"one": [works(1, Limited(until)), works(3)]})
    assert run.code == 0
    workers = run.record.read().workers
    assert datetime.fromisoformat(workers[1].started_at) >= until
    [entry] = run.history("waiting")
    assert datetime.fromisoformat(entry["until"]) == until
    assert (entry["cause"], entry["agent"], entry["is_guess"]) == ("usage limit", "one", False)


async def test_the_next_vendor_goes_on_at_once(runs):
    run = await runs.run({"one": [works(1, Limited(soon(hours=3)))], "two": [works(3)]}, on_limit=OnLimit.SWITCH)
    assert (run.code, run.starts) == (0, ["one", "two"])


async def test_when_all_are_limited_the_earliest_reset_counts(runs, quick_waits):
    later, earlier = soon(hours=3), soon(hours=1)
    run = await runs.run(
        {"one": [works(1, Limited(later))], "two": [works(0, Limited(earlier)), works(3)]}, on_limit=OnLimit.SWITCH
    )
    assert (run.code, run.starts) == (0, ["one", "two", "two"])
    assert earlier <= datetime.fromisoformat(run.record.read().workers[2].started_at) < later


async def test_with_wait_nobody_else_goes_on(runs, quick_waits):
    run = await runs.run({"one": [works(1, Limited(soon(hours=1))), works(3)], "two": [works(3)]})
    assert (run.code, run.starts) == (0, ["one", "one"])


@pytest.mark.parametrize("options", [{"waits": False}, {"on_limit": OnLimit.RELEASE}])
async def test_a_run_that_does_not_wait_ends_at_a_limit_and_says_until_when(runs, options, capsys):
    run = await runs.run({"one": [works(1, Limited(soon(hours=1)))]}, **options)
    assert (run.code, run.starts) == (7, ["one"])
    assert "one may go on at " in capsys.readouterr().err


@pytest.mark.parametrize(
    "last", [works(1, Failed("no login", FailureKind.LOGIN)), works(0, Limited(soon(hours=3))), works(0)]
)
async def test_the_session_says_until_when_the_run_waits_whoever_has_worked_since(runs, last):
    until = soon(hours=1)
    options = {"waits": False, "on_limit": OnLimit.SWITCH}
    run = await runs.run({"one": [works(1, Limited(until))], "two": [last]}, **options)
    again = await runs.run({"one": [NOTHING], "two": [NOTHING]}, run.session_id, **options)
    assert (run.code, again.code, again.agents["one"].tasks) == (7, 7, [])
    assert datetime.fromisoformat(standing_of(run.session).pause.until) == until
    assert again.history("waiting") == run.history("waiting")


async def test_a_limit_outlives_its_runner(runs):
    first = await runs.run({"one": [works(1, Limited(soon(hours=1)))]}, waits=False)
    again = await runs.run({"one": [works(3)]}, first.session_id, waits=False)
    assert (again.code, again.agents["one"].tasks) == (7, [])


@pytest.mark.parametrize("cause", LimitCause)
async def test_every_limit_without_a_time_is_twice_as_long_as_the_last(runs, cause):
    run = await runs.run({"one": [works(1, Limited(None, cause))]}, waits=False)
    guessed = datetime.fromisoformat(run.history("waiting")[-1]["until"]) - datetime.now(UTC)
    assert timedelta(minutes=14) < guessed <= timedelta(minutes=15)
    lengths = []
    for _ in range(6):
        session = run.session
        wait = waiting(session, "one", Limited(None, cause))
        lengths.append((datetime.fromisoformat(wait.until) - datetime.now(UTC)).total_seconds() / 60)
        entry = HistoryEntry.of(wait, datetime.now(UTC).isoformat())
        run.session = session.model_copy(update={"history": [*session.history, entry]})
    assert [round(length) for length in lengths] == [30, 60, 120, 240, 300, 300]
    assert wait.cause == cause.value


@pytest.mark.parametrize("until", [soon(days=-1), soon(days=4000)])
async def test_a_time_that_cannot_be_is_none(runs, until):
    run = await runs.run({"one": [works(1, Limited(until))]}, waits=False)
    [entry] = run.history("waiting")
    assert entry["is_guess"]
    assert datetime.fromisoformat(entry["until"]) < soon(minutes=16)


async def test_list_and_inbox_show_a_limit(runs, project):
    await runs.run({"one": [works(1, Limited(soon(hours=1), LimitCause.OVERLOAD))]}, waits=False)
    listed = await deepwork("sessions", "list", "--path", project.root)
    assert "overload of one" in listed
    assert "waits until " in listed
    [item] = json.loads(await deepwork("inbox", "--json", "--path", project.root))["items"]
    assert item["kind"] == "limit"
    assert "overload of one" in item["what"]


# Money and time


async def test_every_record_is_counted_once_and_the_totals_add_up(runs):
    twice = works(1, Spent("a", 10, 1, 0.1), Spent("a", 20, 2, 0.2), Spent("b", 5, 5, None))
    again = works(3, Spent("a", 20, 2, 0.2))
    run = await runs.run({"one": [twice, again]})
    assert run.record.read().totals() == {"input_tokens": 25, "output_tokens": 7, "cost_usd": 0.2}
    assert [record["worker"] for record in run.record.read().spent.values()] == [1, 1]


async def test_what_is_spent_is_written_down_with_its_step(runs):
    run = await runs.run({"one": [works(4, cost=0.01)]})
    steps = [record["step_id"] for record in run.record.read().spent.values()]
    assert steps == ["b", "c", "d", "d"]


async def test_the_budget_ends_an_agent_after_the_request_that_passes_it(runs, project):
    run = await runs.run({"one": [works(4, cost=0.5)]}, budget_usd=0.9, waits=False)
    assert run.code == 5
    assert run.record.read().totals()["cost_usd"] == 1.0
    assert len(run.agents["one"].tasks) == 1
    [item] = await RunInbox(open_context("run", project.root)).items()
    assert item.kind == "run-budget"
    # It counts for the session, not for the run.
    again = await runs.run({"one": [works(2)]}, run.session_id, budget_usd=0.9, waits=False)
    assert (again.code, again.agents["one"].tasks) == (5, [])


async def test_a_person_gives_the_budget_once_more(runs, project):
    run = await runs.run({"one": [works(4, cost=0.5)]}, budget_usd=0.9, waits=False)
    [item] = await RunInbox(open_context("run", project.root)).items()
    assert await RunInbox(open_context("run", project.root)).answer(item.id, "continue", None, None) == (
        f"To go on: deepwork run --continue {run.session_id}"
    )
    again = await runs.run({"one": [works(2, cost=0.1)]}, run.session_id, budget_usd=0.9, waits=False)
    assert again.code == 0
    assert again.agents["one"].tasks[0].budget_usd == pytest.approx(0.8)


async def test_four_fifths_of_the_budget_are_told(runs, project):
    items = []

    async def looks(agent, task):
        yield Spent("a", 1, 1, 0.85)
        items.extend(await RunInbox(open_context("run", project.root)).items())
        yield Limited(soon(hours=1))

    run = await runs.run({"one": [looks]}, budget_usd=1, waits=False)
    assert run.code == 7
    assert [(item.kind, item.what) for item in items] == [("run-notice", "$0.85 of $1.00 are spent")]


async def test_what_passes_the_time_is_ended_by_force(runs, monkeypatch):
    """The time is over once the agent works."""
    monkeypatch.setattr(runner_module, "FORCE_SECONDS", 0.2)
    monkeypatch.setattr(runner_module, "TICK_SECONDS", 0.01)

    async def works_for_an_hour(agent, task):
        run.runner._started -= 3601
        async for event in hangs(agent, task):
            yield event

    async with runs.opened({"one": [works_for_an_hour]}, max_seconds=3600, waits=False) as run:
        run.code = await run.runner.run()
    assert run.code == 5
    assert run.agents["one"].tasks[0].stop.is_set()
    assert run.record.read().workers[0].end == "the time is over"


async def test_the_time_counts_while_a_limit_is_waited_for(runs):
    async with runs.opened({"one": [works(1, Limited(soon(hours=1)))]}, max_seconds=0.5) as opened:
        with anyio.move_on_after(PATIENCE) as patience:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(opened.runner.run)
                await until(lambda: value(opened.record.read().pause))
                tasks.cancel_scope.cancel()
    assert not patience.cancelled_caught
    assert opened.record.read().pause.kind == "time"


# One runner, and its end


async def test_one_session_has_one_runner_on_a_machine(runs):
    async with runs.opened({"one": [hangs]}) as first, anyio.create_task_group() as tasks:
        tasks.start_soon(first.runner.run)
        await until(lambda: value(first.agents["one"].tasks))
        with pytest.raises(DeepWorkError) as refused:
            await runs.run({"one": [works(4)]}, first.session_id)
        assert str(os.getpid()) in refused.value.message
        assert first.record.runner() == os.getpid()
        tasks.cancel_scope.cancel()
    assert first.record.runner() is None


async def test_an_interruption_lets_the_agent_finish_its_call(runs):
    finished = []

    async def slow_call(agent, task):
        yield Called("finished_step", "1")
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep(0.2)
        await agent.report(task)
        finished.append(True)
        yield Called("finished_step", "1", is_done=True)
        await task.stop.wait()
        yield Ended(0)

    run = await runs.run({"one": [slow_call]})
    assert (run.code, finished, run.session.current_step_id) == (130, [True], "b")


async def test_a_second_interruption_ends_the_agent_at_once(runs):
    async def stubborn(agent, task):
        yield Called("finished_step", "1")
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep_forever()

    run = await runs.run({"one": [stubborn]})
    assert (run.code, run.session.current_step_id) == (130, "a")


async def test_an_interruption_ends_a_wait(runs):
    async with runs.opened({"one": [works(1, Limited(soon(hours=1)))]}) as opened, anyio.create_task_group() as tasks:
        codes = []

        async def run():
            codes.append(await opened.runner.run())

        tasks.start_soon(run)
        await until(lambda: value([worker.ended_at for worker in opened.record.read().workers if worker.ended_at]))
        os.kill(os.getpid(), signal.SIGTERM)
    assert codes == [130]


async def test_a_session_that_waits_for_a_person_is_waited_for(runs, project, monkeypatch):
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.01)
    async with runs.opened({"one": [works(4)]}) as opened:
        waits = [True, True, False]
        standing_of = runner_module.standing_of

        def waiting(session):
            standing = standing_of(session)
            if waits and waits.pop(0):
                from deepwork.models.standing import Standing

                wait = type("W", (), {"step_id": "a"})()
                return Standing(standing.revision, standing.position, standing.state, standing.last_call_at, (wait,))
            return standing

        monkeypatch.setattr(runner_module, "standing_of", waiting)
        assert await opened.runner.run() == 0


async def test_no_agent_is_started_for_a_session_that_a_person_has_paused(runs, project, monkeypatch):
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.01)
    person = Answerer(terminal="/dev/pts/1")
    interventions = project_at(project.root).interventions()
    async with runs.opened({"one": [works(4)]}, waits=False) as opened:
        session = await interventions.pause(await opened.project.session(opened.session_id), "look first", person)
        assert await opened.runner.run() == 4
        assert opened.starts == []
    async with (
        runs.opened({"one": [works(4)]}, opened.session_id) as again,
        anyio.create_task_group() as tasks,
    ):
        codes = []

        async def run():
            codes.append(await again.runner.run())

        tasks.start_soon(run)
        await until(lambda: value(again.record.runner()))
        await interventions.unpause(session, None, person)
    assert (codes, again.starts) == ([0], ["one"])


async def test_a_pause_ends_the_agent_after_its_call_and_its_end_starts_the_next(runs, project, monkeypatch):
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.01)
    person = Answerer(terminal="/dev/pts/1")
    interventions = project_at(project.root).interventions()
    stopped_in_call = []

    async def paused(agent, task):
        yield Called("Bash", "1")
        await interventions.pause(await agent.project.session(task.session_id), "look first", person)
        await anyio.sleep(0.2)
        stopped_in_call.append(task.stop.is_set())
        yield Called("Bash", "1", is_done=True)
        await task.stop.wait()
        yield Ended(0)

    async with runs.opened({"one": [paused, works(4)]}) as opened, anyio.create_task_group() as tasks:
        codes = []

        async def run():
            codes.append(await opened.runner.run())

        tasks.start_soon(run)
        [end] = await until(lambda: value([worker.end for worker in opened.record.read().workers if worker.ended_at]))
        session = await opened.project.session(opened.session_id)
        assert (end, session.current_step_id, opened.starts) == ("a person has paused the session", "a", ["one"])
        await interventions.unpause(session, None, person)
    assert (codes, opened.starts, stopped_in_call) == ([0], ["one", "one"], [False])


async def test_an_aborted_session_ends_the_run(runs):
    async def aborts(agent, task):
        await agent.project.engine.abort(ToolCall(), explanation="no use", session_id=task.session_id)
        yield Ended(0)

    run = await runs.run({"one": [aborts]})
    assert (run.code, run.starts) == (8, ["one"])


async def test_the_history_says_which_agent_waited(runs):
    run = await runs.run({"one": [works(1, Limited(soon(hours=1)))]}, waits=False)
    [entry] = [entry for entry in run.session.history if entry.kind == "waiting"]
    assert isinstance(entry.detail, history.Waiting)
    assert entry.detail.agent == "one"
