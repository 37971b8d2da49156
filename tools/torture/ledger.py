"""The comparison of acknowledgements with the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agents import Agent, Change, changes, is_of, repeated
from report import Report
from sample_project import Aftermath, Project, aftermath
from servers import AnyServer, answer_text


class Ledger:
    """A project, its agents, and how promises to them were broken."""

    def __init__(self, project: Project, agents: Sequence[Agent]) -> None:
        self.project = project
        self.agents = agents
        self.found: dict[str, list[str]] = {}
        self.counts: Counter[str] = Counter()

    def check(self, server: AnyServer | None = None) -> None:
        """Compare the store with the acknowledgements; with a server, have every open session resumed too."""
        after = aftermath(self.project)
        stored = Counter(change for session in after.sessions.values() for change in changes(session))
        self._compare(stored)
        for session in after.sessions.values():
            for change in repeated(session):
                self.complain("twice", f"{change}")
        for kind, texts in (("unreadable", after.unreadable), ("half-applied", after.inconsistent)):
            for text in texts:
                self.complain(kind, text)
        if after.tracebacks:
            self.complain("tracebacks", f"in {self.project.logs.name}")
        if server:
            for agent in self.agents:
                self._resume(server, agent, after)
                agent.settle(server, stored)

    def complain(self, kind: str, text: str) -> None:
        """Note once how a promise was broken."""
        texts = self.found.setdefault(kind, [])
        if text not in texts:
            texts.append(text)

    def finish(self) -> None:
        """Add up what the agents have noted."""
        for agent in self.agents:
            self.counts.update(agent.counts)
            self.counts.update(_kind(change) for change in agent.acknowledged)
            self.found.setdefault("refused", []).extend(agent.refused)

    def _compare(self, stored: Counter[Change]) -> None:
        """Find acknowledged changes that are not there, and changes that are there more often than calls asked for."""
        acknowledged = sum((agent.acknowledged for agent in self.agents), Counter[Change]())
        waiting = [agent.unanswered for agent in self.agents if agent.unanswered]
        aborts = Counter(session_id for session_id, kind, _ in stored if kind == "aborted")
        for change in acknowledged.keys() - stored.keys():
            if not (change[1] == "aborted" and aborts[change[0]]):  # a second abort gets the reply of the first
                self.complain(f"{_kind(change)} lost", f"{change}")
        for change, times in stored.items():
            calls = acknowledged[change] + sum(is_of(change, call) for call in waiting)
            if times > calls:
                self.complain("twice" if calls else "untold", f"{change}")
        for session_id, times in aborts.items():
            if times > 1:
                self.complain("twice", f"{session_id} was aborted {times} times")

    def _resume(self, server: AnyServer, agent: Agent, after: Aftermath) -> None:
        """Ask a server where each open session of an agent is."""
        for session_id in agent.open:
            session = after.sessions.get(session_id)
            if session is None or not session.is_active:
                continue
            self.counts["resumed"] += 1
            text = answer_text(server, "finished_step", outputs={}, session_id=session_id, step_id="?")
            if f"Now at step {session.current_step_id!r}" not in text:
                self.complain("not resumed", f"{session_id} at {session.current_step_id!r}: {text[:200]}")


def _kind(change: Change) -> str:
    return {"started": "starts", "aborted": "aborts"}.get(change[1], "completions")


def tell_losses(report: Report, ledgers: Sequence[Ledger]) -> None:
    """Report how many changes were acknowledged, and which of them were lost, or done twice."""
    counts = sum((ledger.counts for ledger in ledgers), Counter[str]())
    for kind in ("starts", "completions", "aborts"):
        report.fact(f"{kind}, acknowledged", counts[kind])
    report.fact("calls done but not acknowledged", counts["done, not acknowledged"])
    report.fact("calls that lost a race and were told so", counts["lost"])
    for kind in ("starts", "completions", "aborts"):
        report.promise(f"acknowledged {kind} lost", complaints(ledgers, f"{kind} lost"))
    report.promise("changes in a history more than once", complaints(ledgers, "twice"))
    report.promise("changes that came from no call", complaints(ledgers, "untold"))
    report.promise("calls half applied, histories inconsistent", complaints(ledgers, "half-applied"))
    report.promise("session files unreadable", complaints(ledgers, "unreadable"))
    resumed = counts["resumed"]
    report.promise("sessions resumed on the right step", resumed - len(complaints(ledgers, "not resumed")), resumed)
    report.promise("calls refused that were right", complaints(ledgers, "refused"))
    report.promise("tracebacks in the servers' logs", complaints(ledgers, "tracebacks"))


def complaints(ledgers: Sequence[Ledger], kind: str) -> list[str]:
    """Return what was noted of one kind."""
    return [text for ledger in ledgers for text in ledger.found.get(kind, [])]
