"""Every finished_step is sent twice; it may count once, and both senders must get the same reply."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from report import Report
from sample_project import ENTRIES, inconsistencies, make_project, stored_sessions
from servers import Server, tracebacks
from stores import opened_store

from deepwork.testing import Refused, result_of
from deepwork.testing.wire import PATIENCE

WAYS = ("at once", "one after the other", "to two servers at once")
STEPS = [step for primary, *members in ENTRIES for step in (*members, primary)]


def duplicates(count: int, store: str, seed: int) -> int:
    """Send calls twice, and say whether that made a difference."""
    report = Report(f"duplicates: {count:,} finished_step calls with step_id, each sent twice ({store}), seed {seed}")
    sent: Counter[str] = Counter()
    differing: list[str] = []
    refused: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="deepwork-duplicates-") as folder,
        opened_store(store, Path(folder)) as opened,
    ):
        project = make_project(Path(folder), opened)
        servers = (Server(project.root, env=opened.env), Server(project.root, env=opened.env))
        while sum(sent.values()) < count:
            start = {"goal": "twice", "job_name": "demo", "workflow_name": "main"}
            session_id = servers[0].call("start_workflow", **start)["begin_step"]["session_id"]
            for step in STEPS[: count - sum(sent.values())]:
                way = WAYS[(sum(sent.values()) + seed) % len(WAYS)]
                arguments = {"outputs": {f"{step}.md": f"{step}.md"}, "session_id": session_id, "step_id": step}
                sent[way] += 1
                try:
                    first, second = _twice(servers, way, arguments)
                except Refused as text:
                    refused.append(f"{way}, {step}: {text}")
                    continue
                if _lasting(first) != _lasting(second):
                    differing.append(f"{way}, {step}: {first} / {second}")
        for server in servers:
            server.close()
        sessions, unreadable = stored_sessions(project)
        logged = tracebacks(project.root)
    completed = sum(event.kind == "step_completed" for one in sessions.values() for event in one.history)
    for way in WAYS:
        report.fact(f"sent twice {way}", sent[way])
    report.promise("transitions in the histories", completed, count)
    report.promise("histories inconsistent", [line for one in sessions.values() for line in inconsistencies(one)])
    report.promise("replies that differ in more than stack and notices", differing)
    report.promise("calls refused", refused)
    report.promise("session files unreadable", unreadable)
    report.promise("tracebacks in the servers' logs", logged)
    return report.finish()


def _twice(servers: tuple[Server, Server], way: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    if way == "one after the other":
        return tuple(servers[0].call("finished_step", **arguments) for _ in range(2))
    receivers = servers if way == "to two servers at once" else (servers[0], servers[0])
    futures = [server.send("tools/call", name="finished_step", arguments=arguments) for server in receivers]
    return tuple(result_of(future.result(PATIENCE)) for future in futures)


def _lasting(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name not in ("stack", "notices")}
