"""What the worst calls that are allowed cost others: how long they wait, and how much memory the server takes.

A server is started over HTTP for each case, on a database of its own. One client makes the call, and another asks for a
small thing again and again meanwhile: the longest of its waits is what the call has cost it. Memory is the peak of the
process beyond what it had before the call.

    python plugins/deepwork_orchestration/tools/figures_floods.py [CASE ...]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from deepwork.testing import HttpWire, address_of, start_server

MIB = 2**20
GOAL_SECONDS, GOAL_MIB = 1.0, 200
SOURCE = {"source_type": "prompt", "source_content": "c"}

Mapped = dict[str, Any]
Call = tuple[str, Mapped]


def task(number: int, *needed: int, **more: Any) -> Mapped:
    """Make a task of a plan."""
    names = [f"t{other}" for other in needed]
    return {"name": f"t{number}", "description": "d", "sequence": 1, "depends_on": names, **more}


def plan(wire: HttpWire, tasks: list[Mapped]) -> str:
    """Make a workflow with these tasks, in parts that a request has room for."""
    workflow_id = str(wire.call("workflow_create", name="w", **SOURCE)["id"])
    wire.call("workflow_set_plan", id=workflow_id, plan={"summary": "s", "approach": "a", "tasks": tasks})
    return workflow_id


def agents(wire: HttpWire, count: int, **more: Any) -> list[str]:
    """Register agents."""
    return [str(wire.call("agent_register", name=f"a{n}", runtime="custom", **more)["id"]) for n in range(count)]


# Each case prepares what it needs, and returns the call that is measured.


def set_dependencies(wire: HttpWire) -> Call:
    """1,000 tasks each of which waits for all before, as much as a request can hold, which is refused."""
    workflow_id = str(wire.call("workflow_create", name="w", **SOURCE)["id"])
    tasks = [task(n, *range(n)) for n in range(980)]
    return "workflow_set_plan", {"id": workflow_id, "plan": {"summary": "s", "approach": "a", "tasks": tasks}}


def set_allowed_dependencies(wire: HttpWire) -> Call:
    """A plan with as many dependencies as are allowed."""
    workflow_id = str(wire.call("workflow_create", name="w", **SOURCE)["id"])
    tasks = [task(n, *range(max(0, n - 10), n)) for n in range(5000)]
    return "workflow_set_plan", {"id": workflow_id, "plan": {"summary": "s", "approach": "a", "tasks": tasks}}


def set_chain(wire: HttpWire) -> Call:
    """A plan in which each of 5,000 tasks waits for the one before."""
    workflow_id = str(wire.call("workflow_create", name="w", **SOURCE)["id"])
    tasks = [task(n, *([n - 1] if n else [])) for n in range(5000)]
    return "workflow_set_plan", {"id": workflow_id, "plan": {"summary": "s", "approach": "a", "tasks": tasks}}


def next_of_one_group(wire: HttpWire) -> Call:
    """5,000 tasks that can be started, in one parallel group."""
    return "workflow_next_tasks", {"workflow_id": plan(wire, [task(n, parallel_group="g") for n in range(5000)])}


def next_after_many(wire: HttpWire) -> Call:
    """Tasks that have all waited for the same tasks of long names, which are done."""
    first = [{**task(n), "name": f"{n:03}" + "x" * 197} for n in range(10)]
    tasks = first + [{**task(100 + n), "depends_on": [one["name"] for one in first]} for n in range(1500)]
    workflow_id = plan(wire, tasks)
    listed = wire.call("workflow_get", id=workflow_id, include_tasks=True)["tasks"]
    for one in listed[:10]:
        for status in ("planning", "in_progress"):
            wire.call("task_update_status", id=one["id"], status=status)
        wire.call("task_update_status", id=one["id"], status="completed", outcome="done")
    return "workflow_next_tasks", {"workflow_id": workflow_id}


def _with_outcomes(wire: HttpWire, count: int) -> str:
    workflow_id = plan(wire, [*(task(n) for n in range(count)), task(count, *range(count))])
    for one in wire.call("workflow_get", id=workflow_id, include_tasks=True)["tasks"]:
        if one["status"] == "pending":
            for status in ("planning", "in_progress"):
                wire.call("task_update_status", id=one["id"], status=status)
            wire.call("task_update_status", id=one["id"], status="completed", outcome="o" * MIB)
    return workflow_id


def get_with_outcomes(wire: HttpWire) -> Call:
    """A workflow of which 300 tasks have outcomes of 1 MiB."""
    return "workflow_get", {"id": _with_outcomes(wire, 300), "include_tasks": True}


def check_dependencies(wire: HttpWire) -> Call:
    """A task that has waited for 300 tasks with outcomes of 1 MiB."""
    workflow_id = _with_outcomes(wire, 300)
    tasks = wire.call("workflow_get", id=workflow_id, include_tasks=True, include_task_summaries=False)["tasks"]
    return "task_check_dependencies", {"task_id": next(one["id"] for one in tasks if one["name"] == "t300")}


def load_context(wire: HttpWire) -> Call:
    """The context of a task after 300 tasks with outcomes of 1 MiB."""
    return "task_load_context", {**check_dependencies(wire)[1], "max_tokens": 1_000_000}


def _checkpoints(wire: HttpWire) -> str:
    workflow_id = plan(wire, [task(0)])
    [one] = wire.call("workflow_get", id=workflow_id, include_tasks=True)["tasks"]
    for _ in range(150):
        detail = {"d": "x" * (MIB - 100)}
        wire.call("checkpoint_add", task_id=one["id"], type="progress", summary="s" * MIB, detail=detail)
    return str(one["id"])


def list_checkpoints(wire: HttpWire) -> Call:
    """150 checkpoints of 2 MiB."""
    return "checkpoint_list", {"task_id": _checkpoints(wire)}


def get_checkpoints(wire: HttpWire) -> Call:
    """A task with 150 checkpoints of 2 MiB."""
    return "task_get", {"id": _checkpoints(wire), "include_checkpoints": True}


def list_messages(wire: HttpWire) -> Call:
    """300 unread messages of 1 MiB."""
    sender, recipient = agents(wire, 2)
    sent = {"sender_id": sender, "recipient_id": recipient, "message_type": "query", "body": "x" * (MIB - 10)}
    for _ in range(300):
        wire.call("message_send", **sent)
    return "message_list", {"agent_id": recipient, "limit": 1000}


def broadcast(wire: HttpWire) -> Call:
    """A message of 1 MiB to 1,000 agents."""
    ids = agents(wire, 1001)
    return "message_broadcast", {"sender_id": ids[0], "message_type": "notification", "body": "x" * (MIB - 10)}


def broadcast_short(wire: HttpWire) -> Call:
    """A message of 8 KiB to 1,000 agents."""
    ids = agents(wire, 1001)
    return "message_broadcast", {"sender_id": ids[0], "message_type": "notification", "body": "x" * 8000}


def list_agents(wire: HttpWire) -> Call:
    """300 agents with metadata of 1 MiB."""
    agents(wire, 300, metadata={"m": "x" * (MIB - 100)})
    return "agent_list", {}


def list_templates(wire: HttpWire) -> Call:
    """100 templates of 3 MiB."""
    tasks = [{**task(n), "description": "d" * (MIB - 100)} for n in range(3)]
    for number in range(100):
        wire.call("template_create", name=f"t{number}", template={"tasks": tasks})
    return "template_list", {}


def list_available(wire: HttpWire) -> Call:
    """300 available tasks of 1 MiB."""
    for _ in range(100):
        plan(wire, [{**task(n), "description": "d" * (MIB - 100)} for n in range(3)])
    return "task_get_available", {"agent_id": agents(wire, 1)[0], "limit": 1000}


def apply_template(wire: HttpWire) -> Call:
    """A template that would make gigabytes of a value of 1 MiB."""
    tasks = [{**task(0), "description": "{{x}}" * 3000}]
    template_id = wire.call("template_create", name="t", template={"tasks": tasks})["id"]
    return "template_apply", {"template_id": template_id, "workflow_name": "w", "variables": {"x": "x" * (MIB - 10)}}


def deep_metadata(_: HttpWire) -> Call:
    """Metadata of 1 MiB that is as deep as is read."""
    value: Any = "x" * 1000
    for _ in range(60):
        value = {"a": value, "b": ["y" * 1000] * 5}
    return "agent_register", {"name": "a", "runtime": "custom", "metadata": value}


def progress(wire: HttpWire) -> Call:
    """The progress of a plan with as many dependencies on tasks of long names as are allowed."""
    names = [f"{n:04}" + "x" * 96 for n in range(1500)]
    tasks = [{**task(n), "name": name, "depends_on": names[max(0, n - 20) : n]} for n, name in enumerate(names)]
    return "workflow_progress", {"workflow_id": plan(wire, tasks)}


CASES = {
    case.__name__: case
    for case in (
        set_dependencies,
        set_allowed_dependencies,
        set_chain,
        next_of_one_group,
        next_after_many,
        progress,
        get_with_outcomes,
        check_dependencies,
        load_context,
        list_checkpoints,
        get_checkpoints,
        list_messages,
        broadcast,
        broadcast_short,
        list_agents,
        list_templates,
        list_available,
        apply_template,
        deep_metadata,
    )
}


# Measuring


class Peak:
    """The most memory that a process takes from now on, in MiB."""

    def __init__(self, process_id: int) -> None:
        self._folder = Path(f"/proc/{process_id}")
        (self._folder / "clear_refs").write_text("5")
        self._before = self._read()

    def _read(self) -> float:
        lines = (self._folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

    def grown(self) -> float:
        """Return the peak beyond what there was at the beginning."""
        return self._read() - self._before


def cpu_seconds(process_id: int) -> float:
    """Return how long a process has computed: on a busy machine only that says something of the call."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def waits(url: str) -> Iterator[list[float]]:
    """Ask for a small thing again and again, and note how long each answer takes."""
    end, seconds = Event(), list[float]()

    def ask() -> None:
        with HttpWire(url) as wire:
            wire.greet()
            agent_id = agents(wire, 1)[0]
            while not end.is_set():
                began = time.perf_counter()
                # Calls that write wait for others that write, too.
                if len(seconds) % 2:
                    wire.call("workflow_list", limit=1)
                else:
                    wire.call("agent_heartbeat", agent_id=agent_id)
                seconds.append(time.perf_counter() - began)
                time.sleep(0.01)

    thread = Thread(target=ask)
    thread.start()
    while len(seconds) < 20:
        time.sleep(0.01)
    try:
        yield seconds
    finally:
        end.set()
        thread.join()


def measure(name: str) -> str:
    """Return the line of one case."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "server.log")
        server = start_server(Path(folder), "--transport", "http", "--port", "0", "--tools", "orchestration", log=log)
        try:
            url = address_of(server, log)
            with HttpWire(url) as wire:
                wire.greet()
                tool, arguments = CASES[name](wire)
                body = json.dumps(wire.message("tools/call", {"name": tool, "arguments": arguments})).encode()
                with waits(url) as seconds:
                    usual = max(seconds)
                    peak, first = Peak(server.pid), len(seconds)
                    wire.close()  # the server has perhaps closed it, because it was idle while this was prepared
                    began, computed = time.perf_counter(), cpu_seconds(server.pid)
                    answer = wire.post(body, **{"Mcp-Method": "tools/call", "Mcp-Name": tool})
                    took, computed = time.perf_counter() - began, cpu_seconds(server.pid) - computed
                    while len(seconds) <= first + 1:
                        time.sleep(0.01)
                    waited, grown = max(seconds[first:]), peak.grown()
        finally:
            server.terminate()
            server.communicate()
    goal = "reached" if waited <= GOAL_SECONDS and grown <= GOAL_MIB else "MISSED"
    size = len(answer.text) / MIB
    told = "refused" if '"isError":true' in answer.text else "done"
    return (
        f"{name:26} {told:8} {took:6.2f} s, {computed:5.2f} s of CPU, {size:6.2f} MiB answered; "
        f"others waited {waited:5.2f} s (before {usual:.2f}), memory {grown:6.0f} MiB: {goal}"
    )


def main() -> None:
    """Measure the cases that are named, or all."""
    for name in sys.argv[1:] or CASES:
        print(measure(name), flush=True)


if __name__ == "__main__":
    main()
