"""Servers are ended in the middle of calls; what they had acknowledged must be there afterwards."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import click
from agents import LEADS, Agent
from ledger import Ledger, tell_losses
from report import Progress, Report, seed_option
from sample_project import make_project
from servers import TRANSPORTS, AnyServer, transport_option
from stores import Store, opened_store, store_option

from deepwork.testing import Gone

AGENTS = 3
TIMES_PER_PROJECT = 20
LONGEST_LIFE = 0.15


class Victim(Ledger):
    """A project whose servers are ended again and again while agents are at work."""

    def __init__(
        self, root: Path, seed: str, *, logs: Path | None = None, store: Store | None = None, transport: str = "stdio"
    ) -> None:
        project = make_project(root, store, logs=logs)
        super().__init__(project, [Agent(f"{seed}-{number}", project, LEADS) for number in range(AGENTS)])
        self.env = {**project.store.env}
        self._transport = transport
        self.dice = random.Random(seed)

    def suffer(self, times: int, tell: Callable[[], None]) -> None:
        """Let agents work and end their server, again and again; check after each end."""
        for _ in range(times):
            self.once()
            self.counts["ends"] += 1
            tell()
        server = self.open()
        self.check(server)
        server.close()
        self.finish()

    def once(self) -> None:
        """Start a server, check what it finds, and end it while agents are at work."""
        server = self.open()
        self.check(server)
        answered = threading.Event()
        threads = [threading.Thread(target=_work, args=[agent, server, answered]) for agent in self.agents]
        for thread in threads:
            thread.start()
        if self.dice.random() < 0.8:  # a server's first call is slow: few ends would hit another one
            answered.wait(60)
        time.sleep(self.dice.uniform(0, LONGEST_LIFE))
        self.counts["in flight"] += server.unanswered
        self.end(server)
        for thread in threads:
            thread.join()

    def open(self) -> AnyServer:
        """Start a server on any of the transports."""
        kind = self.dice.choice(TRANSPORTS[self._transport])
        return kind(self.project.root, env=self.env, logs=self.project.logs)

    def end(self, server: AnyServer) -> None:
        """Do to a server what it has to survive."""
        server.kill()


def _work(agent: Agent, server: AnyServer, answered: threading.Event) -> None:
    with suppress(Gone):
        while True:
            agent.act(server)
            answered.set()


Maker = Callable[[Path, str], AbstractContextManager[Victim]]


def torment(report: Report, name: str, count: int, seed: int, make: Maker) -> list[Victim]:
    """End servers this often, in several projects and two at a time; report what was lost."""
    sizes = [min(TIMES_PER_PROJECT, count - start) for start in range(0, count, TIMES_PER_PROJECT)]
    if len(sizes) == 1 and count > 1:
        sizes = [count - count // 2, count // 2]
    progress = Progress(name, count)

    def one(number: int) -> Victim:
        with (
            tempfile.TemporaryDirectory(prefix=f"deepwork-{name}-") as folder,
            make(Path(folder), f"{seed}-{number}") as victim,
        ):
            victim.suffer(sizes[number], progress.step)
            return victim

    with ThreadPoolExecutor(2) as pool:
        victims = [*pool.map(one, range(len(sizes)))]
    report.fact("servers ended", sum(victim.counts["ends"] for victim in victims))
    report.fact("calls in flight at those moments", sum(victim.counts["in flight"] for victim in victims))
    tell_losses(report, victims)
    return victims


@click.command()
@click.option("--count", default=1000, show_default=True, help="How many servers to kill.")
@transport_option
@store_option
@seed_option
def kills(count: int, transport: str, store: str, seed: int) -> None:
    """Kill servers at random moments: nothing acknowledged may be lost."""

    @contextmanager
    def victim(folder: Path, seed: str) -> Iterator[Victim]:
        with opened_store(store, folder) as opened:
            yield Victim(folder, seed, store=opened, transport=transport)

    report = Report(f"kills: servers ({transport}, {store}) ended by SIGKILL in the middle of calls, seed {seed}")
    torment(report, "kills", count, seed, victim)
    report.finish()
