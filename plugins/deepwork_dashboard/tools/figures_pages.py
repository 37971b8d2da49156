"""Measure the pages in Chromium: `python plugins/deepwork_dashboard/tools/figures_pages.py [NAME …]`.

Times depend on what else the machine does; run it on a quiet one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import browsing
import team as teams

from deepwork.testing import StdioWire
from deepwork_sql.cluster import NoPostgres, running_cluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from rows import Row, show

SEED = Path(__file__).with_name("seed.py")
TASKS, EVENTS = 2_000, 10_000
LOADS = 5
PAINT_SECONDS = 1.0
WEIGHT = 200 * 1024
HEAP_GROWTH = 1.1
# An update a second, for ten minutes and for an hour.
SHORT, LONG = 600, 3_600
SAMPLES = 60
POLL_SECONDS = 1.0
SECONDS = {"postgresql": 0.3, "sqlite": 0.3 + POLL_SECONDS, "json": 1.3}

SHOWN_AT = """(text) => new Promise((done) => {
    const look = () => {
        if (!document.querySelector('main')?.textContent.includes(text)) return;
        observer.disconnect();
        done(Date.now());
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, {subtree: true, childList: true, characterData: true});
    look();
})"""
PAINT = """() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime))
    .observe({type: 'largest-contentful-paint', buffered: true}))"""
WEIGHTS = """() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter(({name}) => !name.includes('/api/')).map(({encodedBodySize}) => encodedBodySize)"""


TOKEN = secrets.token_urlsafe(32)


@contextmanager
def dashboard(root: Path, **env: str) -> Iterator[str]:
    """Start `deepwork dashboard` and give its address with the token."""
    tokens = root.parent / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"local {TOKEN} person\n")
    command = [sys.executable, "-m", "deepwork", "dashboard", "--port", "0", "--path", str(root)]
    command += ["--token-file", str(tokens)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **env}
    )
    assert process.stdout
    match = re.search(r"http\S+", process.stdout.readline())
    assert match, "the dashboard does not start"
    try:
        yield f"{match[0]}#token={TOKEN}"
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def opened(browser: Browser, address: str, view: str) -> Iterator[tuple[Page, CDPSession]]:
    """Log in, and open a view in a window of its own, as a page that is loaded for the first time.

    The session with its debugger counts the processor's time of the page from there on.
    """
    base = address.partition("#")[0]
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(address)
    page.locator("main h1").wait_for()
    page.goto("about:blank")
    debugger = context.new_cdp_session(page)
    debugger.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"{base}#/{view}")
    try:
        yield page, debugger
    finally:
        context.close()


def read(address: str, path: str) -> Any:
    base, _, token = address.partition("#token=")
    with urlopen(Request(base + path, headers={"Authorization": f"Bearer {token}"})) as answer:
        return json.load(answer)


def load(browser: Browser, large: Path | None) -> Iterator[Row]:
    """Largest contentful paint, and what the pages weigh."""
    with tempfile.TemporaryDirectory() as folder:
        root = large or _seeded(Path(folder) / "large")
        with dashboard(root) as address:
            [plan] = [plan for plan in read(address, "api/plans")["items"] if plan["total"] == TASKS]
            views = {
                "plan": (f"plans/{plan['id']}", ".world path.far"),
                "table of tasks": (f"plans/{plan['id']}?tab=table", ".vrow"),
                "event log": ("events", ".vrow"),
                "overview": ("overview", ".tile"),
            }
            for name, (view, content) in views.items():
                yield _paint(browser, address, name, view, content)
            with opened(browser, address, "inbox") as (page, _):
                page.locator("main h1").wait_for()
                weights = page.evaluate(WEIGHTS)
    yield Row(
        "weight without data",
        f"at most {WEIGHT / 1024:.0f} KiB",
        f"{sum(weights) / 1024:.1f} KiB in {len(weights)} files, compressed",
        sum(weights) <= WEIGHT and 0 not in weights,
    )


def _seeded(root: Path) -> Path:
    """Fill a project in a process of its own, because Playwright's loop runs in this one."""
    amounts = [f"--tasks={TASKS}", f"--events={EVENTS}", "--runs=20", "--work=2"]
    subprocess.run([sys.executable, SEED, root, *amounts], check=True, stdout=sys.stderr)
    return root


def _paint(browser: Browser, address: str, name: str, view: str, content: str) -> Row:
    paints, processor = [], []
    for _ in range(LOADS):
        with opened(browser, address, view) as (page, debugger):
            page.locator(content).first.wait_for()
            processor.append(_processor_seconds(debugger))
            paints.append(page.evaluate(PAINT) / 1000)
    paint, busy = statistics.median(paints), statistics.median(processor)
    measured = f"{paint:.2f} s; {busy:.2f} s of processor time till the data are drawn"
    return Row(f"largest paint: {name}", f"at most {PAINT_SECONDS:g} s", measured, paint <= PAINT_SECONDS)


def _processor_seconds(debugger: CDPSession) -> float:
    """Give what the page's thread has computed, which no other process slows down."""
    metrics = {metric["name"]: metric["value"] for metric in debugger.send("Performance.getMetrics")["metrics"]}
    seconds: float = metrics["TaskDuration"]
    return seconds


def heap(browser: Browser, _large: Path | None) -> Iterator[Row]:
    """The memory of a page that is open for an hour, with an update a second, in less time."""
    with tempfile.TemporaryDirectory() as folder:
        team = teams.Team(Path(folder) / "heap")
        with team.agent("--tools", "orchestration") as agent, dashboard(team.root) as address:
            plan_id, tasks = team.plan(agent, "A plan", [teams.task(f"Task {number}") for number in range(60)])
            first = tasks["Task 0"]
            with opened(browser, address, f"plans/{plan_id}?task={first}") as (page, debugger):
                page.locator(".panel h2").wait_for()
                sizes = [
                    _heap_after(page, debugger, agent, first, range(SHORT)),
                    _heap_after(page, debugger, agent, first, range(SHORT, LONG)),
                ]
    growth = sizes[1] / sizes[0]
    yield Row(
        f"JS heap after {LONG:,} updates",
        f"at most {HEAP_GROWTH:g} x that of {SHORT:,}",
        f"{growth:.2f} x ({sizes[0] / 2**20:.1f} MiB, then {sizes[1] / 2**20:.1f} MiB)",
        growth <= HEAP_GROWTH,
    )


def _heap_after(page: Page, debugger: CDPSession, agent: StdioWire, task_id: str, numbers: range) -> float:
    for number in numbers:
        agent.call("checkpoint_add", task_id=task_id, type="progress", summary=f"Point {number} of many")
    page.get_by_text(f"Point {numbers[-1]} of many").first.wait_for()
    for _ in range(3):
        debugger.send("HeapProfiler.collectGarbage")
    size: float = debugger.send("Runtime.getHeapUsage")["usedSize"]
    return size


def live(browser: Browser, _large: Path | None) -> Iterator[Row]:
    """From the answer to an agent's call in another process to the page."""
    yield _live(browser, "sqlite", _checkpoints, {})
    yield _live(browser, "json", _runs, {})
    try:
        with running_cluster() as server, server.new_database() as url:
            yield _live(browser, "postgresql", _checkpoints, {"DEEPWORK_DATABASE_URL": url})
    except NoPostgres as error:
        yield Row(
            "event to page: postgresql",
            f"p95 at most {SECONDS['postgresql']:g} s",
            f"not measured: {error}",
            reached=False,
        )


def _live(browser: Browser, store: str, measure: Callable[..., list[float]], env: dict[str, str]) -> Row:
    os.environ.update(env)
    try:
        with tempfile.TemporaryDirectory() as folder:
            team = teams.Team(Path(folder) / store)
            with dashboard(team.root) as address:
                times = sorted(measure(browser, team, address))
    finally:
        for name in env:
            del os.environ[name]
    p95 = times[int(len(times) * 0.95) - 1]
    return Row(
        f"event to page: {store}",
        f"p95 at most {SECONDS[store]:g} s",
        f"p95 {p95:.2f} s, median {statistics.median(times):.2f} s, {len(times)} events",
        p95 <= SECONDS[store],
    )


def _checkpoints(browser: Browser, team: teams.Team, address: str) -> list[float]:
    with team.agent("--tools", "orchestration") as agent:
        plan_id, tasks = team.plan(agent, "A plan", [teams.task("Task")])
        with opened(browser, address, f"plans/{plan_id}?task={tasks['Task']}") as (page, _):
            page.get_by_text("Live", exact=True).wait_for()
            return [
                _seen(
                    page,
                    f"Point {number}.",
                    agent,
                    "checkpoint_add",
                    task_id=tasks["Task"],
                    type="progress",
                    summary=f"Point {number}.",
                )
                for number in range(SAMPLES)
            ]


def _runs(browser: Browser, team: teams.Team, address: str) -> list[float]:
    with team.agent("--tools", "core") as agent, opened(browser, address, "runs") as (page, _):
        page.get_by_text("Live", exact=True).wait_for()
        return [
            _seen(
                page,
                f"Run {number}.",
                agent,
                "start_workflow",
                goal=f"Run {number}.",
                job_name="quarterly_report",
                workflow_name="monthly",
            )
            for number in range(SAMPLES // 2)
        ]


def _seen(page: Page, text: str, agent: StdioWire, tool: str, **arguments: Any) -> float:
    """Make a call, and give how many seconds after its answer the page shows the text."""
    time.sleep(random.random())  # not in step with what polls
    page.evaluate(f"window.seen = ({SHOWN_AT})({json.dumps(text)}), 0")
    agent.call(tool, **arguments)
    answered = time.time()
    seen: float = page.evaluate("window.seen")
    return max(0.0, seen / 1000 - answered)


FIGURES = {"load": load, "heap": heap, "live": live}


def main() -> None:
    """Measure what is named, or everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(FIGURES)}")
    parser.add_argument("--large", type=Path, help="a project that seed.py has filled (default: a new one)")
    options = parser.parse_args()
    names = options.names or list(FIGURES)
    executable = browsing.chromium()
    if executable is None:
        parser.exit(69, "Error: there is no Chromium; on Debian: apt-get install chromium\n")
    with browsing.launched(executable) as browser:
        show(row for name in names for row in FIGURES[name](browser, options.large))


if __name__ == "__main__":
    main()
