"""A project whose work a person reviews, made by calls of a real agent over MCP: for tests and pictures.

python plugins/deepwork_dashboard/tests/reviewed.py FOLDER     make one, to look at it with `deepwork dashboard`
"""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import yaml

from deepwork.api import Answerer, project_at
from deepwork.ports.inbox import Answer
from deepwork.testing import DeepworkProject, StdioWire, output, start_server, step

Mapped = dict[str, Any]
LINTER = '''"""Passes, and warns of every TODO."""
import json
import sys
from pathlib import Path

request = json.load(sys.stdin)
findings = [{"file": path, "line": number, "message": "A TODO is left in what is reported.", "level": "warning"}
            for path in request["files"] for number, line in enumerate(Path(path).read_bytes().split(b"\\n"), 1)
            if b"TODO" in line]
results = [{"criterion": name, "passed": True} for name in request["criteria"]]
json.dump({"passed": True, "feedback": "", "criteria_results": results, "findings": findings}, sys.stdout)
'''
CRITERIA = {
    "Reversible": "Can every step of the plan be undone without losing an order?",
    "Tested": "Is there a test for every rule that the plan names?",
}
JOB = {
    "name": "change_of_checkout",
    "summary": "Changes the checkout of the shop",
    "steps": [
        step("notes", name="Collect what is known", outputs={"notes": output("file")}),
        step(
            "plan",
            name="Plan the new checkout",
            outputs={"plan": output("file"), "changes": output("files")},
            inputs=[{"file": "notes", "from_step": "notes"}],
            dependencies=["notes"],
            reviews=[{"run_each": "step", "quality_criteria": CRITERIA}],
        ),
        step("ship", name="Ship it"),
    ],
    "workflows": {"main": ["notes", "plan", "ship"]},
}
PLAN = """# Plan: one page instead of three

Customers leave at the second page of the checkout. We put **address**, *delivery* and payment on one page, and keep the
old pages for a week behind the flag `one_page`.

## Steps

1. Move the form of the address into a part of its own.
2. Compute delivery while the customer types.
3. Show the total at once, TODO: with taxes.

## What can go wrong

| Risk | What we do |
| --- | --- |
| A payment is sent twice | one key per order |
| Delivery is slow to compute | show the last known price |

> Nobody is moved to the new page while their cart is open.

See [the numbers](https://example.org/numbers) and `src/cart.py`.
"""
CART = '''"""The cart."""

from decimal import Decimal


class Cart:
    def __init__(self):
        self.lines = []

    def add(self, item, count=1):
        self.lines.append((item, count))

    def total(self):
        return sum(item.price * count for item, count in self.lines)

    def delivery(self, country):
        if country == "DE":
            return Decimal("4.90")
        return Decimal("12.90")

    def is_empty(self):
        return not self.lines
'''
PRICES = "country,delivery,from\nDE,4.90,2026-11-01\nAT,6.90,2026-11-01\nFR,9.90,2026-12-01\n"
LIMITS = '{"items": 50, "weight_kg": 30, "countries": ["DE", "AT", "FR"]}\n'
COMMENTS = [
    {
        "file": "plan.md",
        "line": 9,
        "text": "And if the service that computes it is down? Say what the customer sees then.",
        "must": True,
    },
    {
        "file": "src/cart.py",
        "line": 17,
        "end_line": 19,
        "text": "These belong into prices.csv, next to the others.",
        "must": True,
        "suggestion": "        return PRICES.delivery(country)\n",
    },
    {"file": "src/cart.py", "line": 14, "text": "A word on rounding would help.", "must": False},
]


def png(width: int = 96, height: int = 64) -> bytes:
    """Draw a small picture."""
    rows = b"".join(
        b"\0" + b"".join(bytes((80 + x * 2 % 170, 70 + y, 229)) for x in range(width)) for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Reviewed:
    """A project, and an agent on it whose step `plan` waits for a person."""

    def __init__(self, root: Path, *, env: dict[str, str] | None = None, gate: Mapped | None = None) -> None:
        self.root = root
        self.env = env
        root.mkdir(parents=True, exist_ok=True)
        self.project = DeepworkProject(root)
        self.project.write_job(**JOB)
        self.project.write("tools/lint.py", LINTER)
        gate = {
            "runners": [{"step": "plan", "runner": ["linter", "person"]}],
            "commands": {"linter": {"run": [sys.executable, "tools/lint.py"]}},
            **(gate or {}),
        }
        self.project.write(".deepwork/config.yml", yaml.safe_dump({"quality_gate": gate}))
        command = [sys.executable, "-m", "deepwork", "trust", "--yes", "--path", str(root)]
        subprocess.run(command, check=True, capture_output=True, env=env)

    @contextmanager
    def agent(self) -> Iterator[StdioWire]:
        """Connect an agent to a server of its own."""
        process = start_server(self.root, "--tools", "core", env=self.env)
        try:
            wire = StdioWire(process)
            wire.greet()
            yield wire
        finally:
            process.stdin.close()  # type: ignore[union-attr]  # it was opened as a pipe
            process.wait(30)

    def begin(self, agent: StdioWire, goal: str = "A checkout that nobody leaves") -> str:
        """Start a session whose step `plan` is next."""
        reply = agent.call("start_workflow", goal=goal, job_name=JOB["name"], workflow_name="main")
        session_id: str = reply["begin_step"]["session_id"]
        self.project.write("notes.md", "Of 100 customers 31 leave at the second page.\n")
        agent.call("finished_step", outputs={"notes": "notes.md"}, step_id="notes", session_id=session_id)
        return session_id

    def report(self, agent: StdioWire, session_id: str, files: dict[str, str | bytes], notes: str = "") -> Mapped:
        """Report the step `plan` with these files; `plan.md` is the plan."""
        for path, content in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        outputs = {"plan": "plan.md", "changes": [path for path in files if path != "plan.md"]}
        more = {"notes": notes} if notes else {}
        return agent.call("finished_step", outputs=outputs, step_id="plan", session_id=session_id, **more)

    def decide(
        self, session_id: str, action: str, text: str | None = None, comments: Any = (), who: str = "ann"
    ) -> None:
        """Decide as a person does."""
        by = Answerer(principal="local", user=who, client="dashboard")

        async def decide() -> None:
            await project_at(self.root).pieces().decide(session_id, "plan", Answer(action, text, comments=comments), by)

        with ThreadPoolExecutor(1) as thread:  # the tests of pages have a loop in their own
            thread.submit(anyio.run, decide).result()


def files(**changed: str | bytes) -> dict[str, str | bytes]:
    """Return what the agent reports first, with some files changed."""
    contents: dict[str, str | bytes] = {
        "plan.md": PLAN,
        "src/cart.py": CART,
        "prices.csv": PRICES,
        "limits.json": LIMITS,
        "checkout.png": png(),
        "deploy.env": 'API_KEY="an-invented-key-0123456789"\n',
    }
    return {**contents, **changed}


SECOND = {
    "plan.md": PLAN.replace(
        "2. Compute delivery while the customer types.\n",
        "2. Compute delivery while the customer types; if that fails, show the highest price and say so.\n",
    ).replace(", TODO: with taxes", ", with taxes"),
    "src/cart.py": CART.replace(
        """        if country == "DE":
            return Decimal("4.90")
        return Decimal("12.90")
""",
        "        return PRICES.delivery(country)\n",
    ).replace("from decimal import Decimal\n", "from prices import PRICES\n"),
    "prices.csv": PRICES + "IT,11.90,2026-12-01\n",
    "checkout.png": png(120, 64),
}


def tell(root: Path) -> tuple[Reviewed, str]:
    """Make the whole story: two attempts, comments on the first, and a person who is asked about the second."""
    reviewed = Reviewed(root)
    with reviewed.agent() as agent:
        session_id = reviewed.begin(agent)
        reviewed.report(agent, session_id, files())
        reviewed.decide(session_id, "changes", "Close. Two things have to change.", COMMENTS)
        reply = reviewed.report(agent, session_id, files(**SECOND))
        names = [comment["id"] for comment in reply.get("comments") or []]
        answers = "\n".join(f"{name}: Done, see the new lines." for name in names)
        reviewed.report(agent, session_id, files(**SECOND), answers or "c1: Done.")
    return reviewed, session_id


if __name__ == "__main__":
    reviewed, session = tell(Path(sys.argv[1]).absolute())
    print(f"Look at it: deepwork dashboard --open --path {sys.argv[1]}  #/sessions/{session}/steps/plan")
