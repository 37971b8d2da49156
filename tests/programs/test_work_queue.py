"""Blocking work in few threads: one piece that blocks holds up the others for a moment only."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest

from deepwork.programs.work_queue import HOLD_UP_SECONDS, MAX_THREADS, Batches, WorkQueue
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
def queue():
    return WorkQueue("test")


async def results(queue, *works):
    """Return the results of pieces of work that wait together."""
    pieces = [queue.submit(work) for work in works]
    return [await piece.result() for piece in pieces]


async def test_what_waits_is_done_in_its_order_by_one_thread_and_told_at_once(queue):
    order, wake_ups = [], []
    loop = asyncio.get_running_loop()
    wake = loop.call_soon_threadsafe
    loop.call_soon_threadsafe = lambda *arguments: wake_ups.append(1) or wake(*arguments)
    begin = threading.Event()
    try:
        first = queue.submit(begin.wait)
        waiting = [queue.submit(lambda n=n: order.append(n) or threading.get_ident()) for n in range(20)]
        begin.set()
        await first.result()
        threads = {await piece.result() for piece in waiting}
    finally:
        del loop.call_soon_threadsafe
    assert order == [*range(20)]
    assert (len(threads), len(wake_ups)) == (1, 1)


async def test_an_error_reaches_only_its_caller(queue):
    def fail():
        raise StopIteration("of a plugin")  # no future takes this one

    failing, good = queue.submit(fail), queue.submit(lambda: "done")
    assert await good.result() == "done"
    with pytest.raises(RuntimeError, match="StopIteration"):
        await failing.result()


async def test_work_that_blocks_does_not_stop_what_waits_behind_it(queue):
    """A FIFO without a writer blocks for ever, as a file on a network disk does that has gone away."""
    released = threading.Event()
    stuck = [queue.submit(released.wait) for _ in range(MAX_THREADS - 1)]
    with anyio.fail_after(240):
        assert await queue.run(lambda: "done") == "done"
    released.set()
    for piece in stuck:
        await piece.result()


async def test_results_are_told_although_a_later_piece_blocks(queue):
    released = threading.Event()
    begin = threading.Event()
    first = queue.submit(begin.wait)
    early, late = queue.submit(lambda: "early"), queue.submit(released.wait)
    begin.set()
    await first.result()
    with anyio.fail_after(240):
        assert await early.result() == "early"
    released.set()
    await late.result()


async def test_no_more_threads_than_allowed_are_started():
    queue = WorkQueue("few", threads=3)
    running, most = 0, 0
    lock, are_three, released = threading.Lock(), threading.Event(), threading.Event()

    def block():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                are_three.set()
        released.wait()
        with lock:
            running -= 1

    pieces = [queue.submit(block) for _ in range(10)]
    await anyio.to_thread.run_sync(are_three.wait)
    await anyio.sleep(5 * HOLD_UP_SECONDS)  # the others are late by now, and still wait
    released.set()
    for piece in pieces:
        await piece.result()
    assert most == 3


async def test_work_that_has_begun_ends_although_its_caller_is_cancelled(queue):
    has_begun, go_on, ends = threading.Event(), threading.Event(), []

    def work():
        has_begun.set()
        go_on.wait()
        ends.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.run, work)
        await anyio.to_thread.run_sync(has_begun.wait)
        tasks.cancel_scope.cancel()
        go_on.set()
    assert ends == [True]


async def test_a_caller_that_is_cancelled_before_begins_nothing(queue):
    runs = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await queue.run(lambda: runs.append(True))
    assert runs == []


def test_one_queue_serves_one_event_loop_after_another(queue):
    for number in range(3):
        assert asyncio.run(queue.run(lambda number=number: number)) == number


def test_a_thread_goes_when_there_is_nothing_to_do(monkeypatch):
    monkeypatch.setattr("deepwork.programs.work_queue.IDLE_SECONDS", 0.01)
    queue = WorkQueue("short-lived")
    for _ in range(3):
        assert asyncio.run(queue.run(lambda: threading.current_thread().name)) == "short-lived"
        for thread in threading.enumerate():
            if thread.name == "short-lived":
                thread.join(PATIENCE)
    assert "short-lived" not in {thread.name for thread in threading.enumerate()}


class Held:
    """A queue whose only thread is held up until `end`."""

    def __init__(self):
        self.queue = WorkQueue("held", threads=1)
        self._begun, self._may_end = threading.Event(), threading.Event()

    async def begin(self, tasks):
        tasks.start_soon(self.queue.run, lambda: self._begun.set() or self._may_end.wait(PATIENCE))
        await anyio.to_thread.run_sync(self._begun.wait, PATIENCE)

    def end(self):
        self._may_end.set()


async def test_items_that_wait_are_done_in_batches_of_a_size_in_their_order():
    held, batches = Held(), []
    together = Batches(held.queue, lambda items: batches.append(list(items)), largest=3)
    async with anyio.create_task_group() as tasks:
        await held.begin(tasks)
        for item in range(7):
            tasks.start_soon(together.run, item)
        await anyio.wait_all_tasks_blocked()
        held.end()
    assert batches == [[0, 1, 2], [3, 4, 5], [6]]


async def test_an_item_that_comes_while_a_batch_is_done_waits_for_the_next_one():
    batches, has_begun, may_end = [], threading.Event(), threading.Event()

    def work(items):
        batches.append(list(items))
        has_begun.set()
        may_end.wait(PATIENCE)

    together = Batches(WorkQueue("batches", threads=1), work)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(together.run, "first")
        await anyio.to_thread.run_sync(has_begun.wait, PATIENCE)
        tasks.start_soon(together.run, "second")
        await anyio.wait_all_tasks_blocked()
        assert batches == [["first"]]
        may_end.set()
    assert batches == [["first"], ["second"]]


async def test_work_on_a_batch_that_raises_is_told_to_all_who_wait_for_it():
    def fail(_items):
        raise LookupError("no")

    held, errors = Held(), []
    together = Batches(held.queue, fail)

    async def run(item):
        with pytest.raises(LookupError) as error:
            await together.run(item)
        errors.append(error.value.args)

    async with anyio.create_task_group() as tasks:
        await held.begin(tasks)
        for item in range(3):
            tasks.start_soon(run, item)
        await anyio.wait_all_tasks_blocked()
        held.end()
    assert errors == [("no",)] * 3
