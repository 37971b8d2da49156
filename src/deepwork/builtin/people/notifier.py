"""Tells people once of what waits: reads the inbox every second, sends what is new, and notes what was sent.

One process sends for a project. It holds a lock in the user's state folder, which the kernel frees when it dies, and
the next one goes on with the notes. What was sent is noted after the other side has it, so a process that is killed
loses nothing, and sends again only what it had no time to note.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from deepwork.builtin.people.sent import SentNotes
from deepwork.builtin.people.targets import Notification, NotSent, Target
from deepwork.errors import ConfigError, DeepWorkError
from deepwork.ports.inbox import Answerer, Inbox, InboxContents, InboxItem

if sys.platform != "win32":
    import fcntl

LOOK_SECONDS = 1.0
LOCK = "sender.lock"
NOTES = "notes"
# So many notifications to one target are under way at once: a request that hangs holds up few others. The others wait
# in the order of the inbox, which each look brings up to date: urgent items do not queue behind a flood.
CONCURRENCY = 4
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0

log = logging.getLogger("deepwork.notifications")

Key = tuple[str, str]


class Notifier:
    """Sends what waits in one project.

    Args:
        inbox: What waits.
        targets: Where it is sent.
        folder: Where the lock and the notes are, in the user's state folder.
        project: The project's folder, for receivers of several.

    Attributes:
        targets: Where it is sent.
        state: What it does now, in words.
        problems: What keeps each target from having everything, by its name.
    """

    def __init__(self, inbox: Inbox, targets: Sequence[Target], *, folder: Path, project: Path) -> None:
        self._inbox = inbox
        self.targets = targets
        self._folder = folder
        self._project = str(project)
        self._sent = SentNotes(folder)
        self._under_way: set[Key] = set()
        self._failures: dict[Key, tuple[int, float]] = {}
        self._queues: dict[str, deque[InboxItem]] = {}
        self._senders = Counter[str]()
        self.state = "waiting"
        self.problems: dict[str, str] = {}

    async def run(self) -> None:
        """Send until cancelled; while another process sends for this project, wait.

        Raises:
            ConfigError: The user's state folder cannot be written.
        """
        async with self._lease():
            self.state = "sending"
            await to_thread.run_sync(self._sent.read)
            async with anyio.create_task_group() as tasks:
                while True:
                    await self._look(tasks)
                    await anyio.sleep(LOOK_SECONDS)

    async def test(self) -> dict[str, NotSent | None]:
        """Send every target something that looks like an item, once, and give what went wrong, by the target's name."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        item = InboxItem(
            id="test:notification",
            kind="test",
            what="A test: notifications of what waits for you arrive here",
            since=now,
            state=now,
        )
        results: dict[str, NotSent | None] = {}
        for target in self.targets:
            try:
                await target.send(notification(item, self._project))
                results[target.name] = None
            except NotSent as error:
                results[target.name] = error
        return results

    async def _look(self, tasks: TaskGroup) -> None:
        contents = await self._inbox.items(Answerer())
        self._forget(contents)
        for target in self.targets:
            queue = deque(item for item in contents.items if self._is_due(target, item))
            self._queues[target.key] = queue
            for _ in range(min(len(queue), CONCURRENCY - self._senders[target.key])):
                self._senders[target.key] += 1
                tasks.start_soon(self._deliver_all, target)
        await self._save()

    async def _save(self) -> None:
        """Write the notes. What cannot be written is still known to this process, and is tried again at each look."""
        try:
            await to_thread.run_sync(self._sent.save)
        except (OSError, DeepWorkError) as error:
            self.problems[NOTES] = f"what was sent cannot be noted in {self._folder}: {error}"
            log.warning("%s", self.problems[NOTES])
        else:
            self.problems.pop(NOTES, None)

    def _forget(self, contents: InboxContents) -> None:
        """Forget what no longer waits. A failed source, or a list that is cut, does not tell."""
        ids = {item.id for item in contents.items}
        unknown = {failure.source for failure in contents.failures}
        targets = {target.key for target in self.targets}

        def is_kept(key: Key) -> bool:
            is_known = key[1] in ids or key[1].partition(":")[0] in unknown
            return key[0] in targets and (is_known or contents.more > 0)

        self._sent.keep(is_kept)
        self._failures = {key: failure for key, failure in self._failures.items() if is_kept(key)}
        for target in self.targets:
            if all(key[0] != target.key for key in self._failures):
                self.problems.pop(target.name, None)

    def _is_due(self, target: Target, item: InboxItem) -> bool:
        key = (target.key, item.id)
        if item.held_by or key in self._under_way or self._sent.state(key) == item.state:
            return False
        _, next_time = self._failures.get(key, (0, 0.0))
        return anyio.current_time() >= next_time

    async def _deliver_all(self, target: Target) -> None:
        """Send what is due to a target, until nothing is."""
        try:
            while self._queues[target.key]:
                await self._deliver(target, self._queues[target.key].popleft())
        finally:
            self._senders[target.key] -= 1

    async def _deliver(self, target: Target, item: InboxItem) -> None:
        """Send one item, and note it; what fails is sent again after a pause that grows."""
        key = (target.key, item.id)
        self._under_way.add(key)
        try:
            await target.send(notification(item, self._project))
            with anyio.CancelScope(shield=True):
                self._sent.add(key, item.state)
                self._failures.pop(key, None)
                await self._save()
        except Exception as error:
            if not isinstance(error, NotSent):
                log.exception("notification %s", item.id)
            count = self._failures.get(key, (0, 0.0))[0] + 1
            pause = min(FIRST_PAUSE * 2 ** (count - 1), LONGEST_PAUSE) * random.uniform(0.8, 1.2)
            self._failures[key] = count, anyio.current_time() + pause
            self.problems[target.name] = f"{_reason(error)}; tried again in {pause:.0f} s"
            log.warning("notification %s: %s", item.id, self.problems[target.name])
        finally:
            self._under_way.discard(key)

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[None]:
        """Hold the lock of the only process that sends for this project."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ConfigError(
                f"no notifications can be sent, because {str(self._folder)!r} cannot be written: {error.strerror}"
            ) from None
        try:
            while not _is_locked(descriptor):
                self.state = "another process sends"
                await anyio.sleep(LOOK_SECONDS)
            yield
        finally:
            os.close(descriptor)


def notification(item: InboxItem, project: str) -> Notification:
    """Write an item as receivers get it."""
    body = {"id": item.id, "state": item.state, "project": project, "item": item.as_json()}
    key = sha256(json.dumps([project, item.id, item.state]).encode()).hexdigest()[:32]
    return Notification(key, json.dumps(body).encode())


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, NotSent) else f"a bug of deepwork: {type(error).__name__}"


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
