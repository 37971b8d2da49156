"""Blocking work of one kind, done by as few threads as get on with it."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from anyio import CancelScope, lowlevel

# So long at most does a piece of work wait for a slow one before it; then another thread takes it.
HOLD_UP_SECONDS = 0.05
# A thread that has had nothing to do for so long ends.
IDLE_SECONDS = 5.0
MAX_THREADS = 32

T = TypeVar("T")


class Piece(Generic[T]):
    """A piece of work in a queue. Any number of callers may wait for it."""

    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.since = time.monotonic()
        self.end: asyncio.Future[None] = loop.create_future()
        self._work = work
        self._context = contextvars.copy_context()
        self._results: list[T] = []
        self._error: BaseException | None = None

    async def result(self) -> T:
        """Wait until it is done, also when the caller is cancelled: what has begun ends."""
        with CancelScope(shield=True):
            await asyncio.shield(self.end)
        if self._error:
            raise self._error
        return self._results[0]

    def do(self) -> None:
        """Do the work, in a thread."""
        try:
            self._results.append(self._context.run(self._work))
        except BaseException as error:  # noqa: BLE001 - raised again by `result`
            self._error = error


class WorkQueue:
    """Does blocking work in the order in which it comes, for callers in an event loop.

    Threads that take the interpreter lock from each other cost more than most of what they do. So one thread does all
    that waits, and then wakes the event loop once for all of it. It may come upon a slow disk: when the next piece has
    waited for `HOLD_UP_SECONDS`, what is done is told, and one more thread takes what waits, up to `threads` of them.
    """

    def __init__(self, name: str, *, threads: int = MAX_THREADS) -> None:
        self._name = name
        self._threads = threads
        self._lock = threading.Lock()  # of everything below
        self._waiting: deque[Piece[Any]] = deque()
        self._done: list[Piece[Any]] = []
        self._busy = 0
        self._idle = 0
        self._turns: SimpleQueue[None] = SimpleQueue()
        self._watched_by: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Do a piece of work; once begun it ends, and its caller cannot be cancelled meanwhile."""
        await lowlevel.checkpoint_if_cancelled()
        return await self.submit(work).result()

    def submit(self, work: Callable[[], T]) -> Piece[T]:
        """Put a piece of work at the end of the queue."""
        piece = Piece(work, asyncio.get_running_loop())
        with self._lock:
            self._waiting.append(piece)
            if not self._busy:
                self._take_turn()
            elif self._watched_by is not piece.loop:  # the piece may wait for a slow one
                self._watched_by = piece.loop
                piece.loop.call_later(HOLD_UP_SECONDS, self._watch, piece.loop)
        return piece

    def _take_turn(self) -> None:
        """Set one more thread to work; called with the lock held."""
        self._busy += 1
        if self._idle:
            self._idle -= 1
            self._turns.put(None)
        else:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._work_off()
            try:
                self._turns.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._turns.empty():  # otherwise a turn was given at this moment
                        self._idle -= 1
                        return
                self._turns.get()

    def _work_off(self) -> None:
        """Do what waits, and then tell of all of it at once."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy -= 1
                    self._idle += 1
                    finished, self._done = self._done, []
                    break
                piece = self._waiting.popleft()
            piece.do()
            with self._lock:
                self._done.append(piece)
        _tell(finished)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start another thread while a slow piece of work holds up others."""
        with self._lock:
            finished, self._done = self._done, []
            is_late = bool(self._waiting) and time.monotonic() - self._waiting[0].since >= HOLD_UP_SECONDS
            if is_late and self._busy < self._threads:
                self._take_turn()
            if self._busy:
                self._watched_by = loop
                loop.call_later(HOLD_UP_SECONDS, self._watch, loop)
            elif self._watched_by is loop:
                self._watched_by = None
        if finished:
            _tell(finished)


class Batches(Generic[T]):
    """Has a queue do what waits at the same time as one piece of work, such as one transaction.

    Args:
        queue: The queue.
        work: Does all items of a batch, and notes in each what has become of it.
        largest: No batch has more items.
    """

    def __init__(self, queue: WorkQueue, work: Callable[[list[T]], None], *, largest: int = sys.maxsize) -> None:
        self._queue = queue
        self._work = work
        self._largest = largest
        self._lock = threading.Lock()  # of the batch that waits
        self._batch: list[T] = []
        self._piece: Piece[None] | None = None

    async def run(self, item: T) -> None:
        """Have an item done, and wait for its whole batch; as `WorkQueue.run`, it then ends in any case."""
        await lowlevel.checkpoint_if_cancelled()
        await self._join(item).result()

    def _join(self, item: T) -> Piece[None]:
        with self._lock:
            if self._piece is None or len(self._batch) >= self._largest:
                self._batch = []
                self._piece = self._queue.submit(partial(self._do, self._batch))
            self._batch.append(item)
            return self._piece

    def _do(self, batch: list[T]) -> None:
        with self._lock:
            if self._batch is batch:  # from here on nothing joins it
                self._piece = None
        self._work(batch)


def _tell(pieces: Iterable[Piece[Any]]) -> None:
    """Wake the callers that wait for pieces, with one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Piece[Any]]] = {}
    for piece in pieces:
        by_loop.setdefault(piece.loop, []).append(piece)
    for loop, own in by_loop.items():
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(_end_all, own)


def _end_all(pieces: Iterable[Piece[Any]]) -> None:
    """Wake the callers that wait for pieces, in their event loop."""
    for piece in pieces:
        if not piece.end.done():
            piece.end.set_result(None)
