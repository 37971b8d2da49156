"""Measure what this plugin promises: `python plugins/deepwork_review/tools/figures_review.py [NAME …]`."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from deepwork.api import open_context
from deepwork_review.changed import OPTIONS
from deepwork_review.discover import walk
from deepwork_review.match import Matcher, refuse_glob
from deepwork_review.plan import make_plan

TESTS = Path(__file__).parent.parent / "tests"
REPOSITORY = Path(__file__).parent.parent.parent.parent
MINIMAL = "from fastmcp import FastMCP; FastMCP('minimal').run(show_banner=False)"
FILES, RULES, CHANGED = 100_000, 200, 500
CASES = 2000
MIB = 1024


def of_tests(name: str) -> Any:
    """Load a test module, for its tables."""
    spec = importlib.util.spec_from_file_location(name, TESTS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def git(root: Path, *arguments: str) -> bytes:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True).stdout


def make_big(root: Path) -> None:
    """Make the large repository: half of the rules in the root, half in folders; half of the changes committed."""
    body = "{description: d, match: {include: ['%s'], exclude: ['**/gen/**']}, review: {strategy: %s, instructions: i}}"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    lines = [f"root_{n}: {body % (f'**/*_{n}.py', 'individual')}\n" for n in range(RULES // 2)]
    (root / ".deepreview").write_text("".join(lines))
    for number in range(FILES):
        folder = root / f"d{number // 1000}" / f"e{number // 100 % 10}"
        if number % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file_{number % 100}.py").write_text(f"x = {number}\n")
    for number in range(RULES // 2):
        (root / f"d{number}" / ".deepreview").write_text(f"in_{number}: {body % ('**/*.py', 'matches_together')}\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    git(root, "checkout", "-q", "-b", "work")
    for number in range(CHANGED):
        file = root / f"d{number % 100}" / f"e{number // 100}" / f"file_{number % 97}.py"
        file.write_text("changed\n")
        if number == CHANGED // 2:
            git(root, "commit", "-q", "-a", "-m", "half")
    time.sleep(1.1)  # or git would have to look into files that are as young as its index
    git(root, "status", "--porcelain")


def by_hand(root: Path) -> float:
    """Run the git commands that a reply needs, one after the other, and return the seconds."""
    started = time.perf_counter()
    git(root, "rev-parse", "--is-shallow-repository", "--is-inside-work-tree", "--show-toplevel")
    git(root, "for-each-ref", "refs/heads/main")
    base = git(root, "merge-base", "main", "HEAD").decode().strip()
    git(root, "ls-files", "-z", "--cached", "--", ":(glob)**/.deepreview")
    git(root, "ls-files", "-z", "--others", "--exclude-standard")
    git(root, "diff", *OPTIONS, base, "--")
    git(root, "diff", *OPTIONS, "--cached", base, "--")
    return time.perf_counter() - started


def peak_of_children(pid: int) -> int:
    """Return the largest resident size that a child process has had so far, in KiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])  # type: ignore[index]


def children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


async def big(folder: Path) -> None:
    root = folder / "big"
    make_big(root)
    before = children()
    async with Client(StdioTransport(sys.executable, ["-c", MINIMAL], log_file=folder / "log", keep_alive=False)):
        (pid,) = children() - before
        minimal = peak_of_children(pid)
    server = StdioTransport(
        sys.executable,
        ["-m", "deepwork", "serve", "--path", str(root), "--tools", "review"],
        log_file=folder / "log",
        keep_alive=False,
        env=dict(os.environ),
    )
    before = children()
    async with Client(server) as client:
        (pid,) = children() - before

        async def ask() -> tuple[float, str]:
            started = time.perf_counter()
            result = await client.call_tool("get_review_instructions", {})
            return time.perf_counter() - started, result.content[0].text  # type: ignore[union-attr]

        git_before, calls_before, git_after, calls_after = [], [], [], []
        for _ in range(5):
            git_before.append(await anyio.to_thread.run_sync(by_hand, root))
            seconds, reply = await ask()
            calls_before.append(seconds)
        tasks = re.findall(r"review_instructions/(.+)\.md", reply)
        started = time.perf_counter()
        for review_id in tasks:
            await client.call_tool("mark_review_as_passed", {"review_id": review_id, "summary": "fine"})
        marking = time.perf_counter() - started
        for _ in range(5):
            git_after.append(await anyio.to_thread.run_sync(by_hand, root))
            seconds, reply = await ask()
            calls_after.append(seconds)
        peak = peak_of_children(pid)
    median = statistics.median
    first_ratio = calls_before[0] / git_before[0]
    print(f"{FILES:,} files, {RULES} rules, {CHANGED} changed files: {len(tasks)} reviews")
    print(
        f"  git by hand {median(git_before):.3f} s, first call {calls_before[0]:.3f} s ({first_ratio:.2f} x), "
        f"later calls {median(calls_before):.3f} s ({median(calls_before) / median(git_before):.2f} x; limit 3)"
    )
    print(
        f"  all passed: {median(calls_after):.3f} s, {median(calls_after) / median(git_after):.2f} x git, "
        f"{median(calls_after) / median(calls_before):.2f} x the calls before (limit 1.2), "
        f"{reply.count('name: ')} tasks; marking one takes {marking / max(1, len(tasks)) * 1000:.1f} ms"
    )
    print(f"  peak memory {(peak - minimal) / MIB:.0f} MiB above a minimal FastMCP server (limit 96)")


def globs() -> None:
    worst, worst_glob = 0.0, ""
    for glob, path in of_tests("test_match").HOSTILE:
        matcher = Matcher("", [refuse_glob(glob)])
        started = time.perf_counter()
        matcher.matches(path)
        seconds = time.perf_counter() - started
        if seconds > worst:
            worst, worst_glob = seconds, glob
    print(f"hostile globs: worst {worst * 1000:.1f} ms per path ({worst_glob!r}; limit 50)")
    matcher = Matcher("", ["**/a/**/b/**/c"])
    paths = ["/".join(["a", "b"] * 55) + f"/{number}" for number in range(3000)]
    started = time.perf_counter()
    selected = matcher.select(paths)
    print(
        f"  a slow rule on 3,000 deep paths: {time.perf_counter() - started:.2f} s, {len(selected)} count as "
        f"matching, reported as {matcher.gave_up!r}"
    )


def loops(folder: Path) -> None:
    root = folder / "loops"
    (root / "a").mkdir(parents=True)
    (root / "a" / "l1").symlink_to("..")
    (root / "a" / "l2").symlink_to("..")
    (root / "a" / "l3").symlink_to(".")
    started = time.perf_counter()
    walk(root)
    print(f"loops of links: {time.perf_counter() - started:.3f} s (limit 1)")


def soundness() -> None:
    module, failures, cases = of_tests("test_identity"), [], Counter()

    @settings(
        max_examples=CASES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(module.projects(), st.sampled_from(list(module.MUTATIONS)))
    def check(project: Any, mutation: str) -> None:
        cases[mutation] += 1
        if not module.is_sound(project, mutation):
            failures.append((mutation, project))

    check()
    print(f"identities: {cases.total()} cases of {len(cases)} kinds, {len(failures)} wrong (limit 0)")
    for mutation, project in failures[:5]:
        print(f"  {mutation}: {json.dumps(project)}")


def hostile() -> None:
    module, rows = of_tests("test_hostile"), []
    for name, attack in module.HOSTILE.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(os.path.realpath(folder)) / "repo"
            program = module.prepare(root)
            attack(root, program)
            before = module.fired(root)
            plan = anyio.run(partial(make_plan, open_context("review", root)))
            paths = sorted(path for review in plan.reviews for path in review.material.paths)
            rows.append((name, module.fired(root) - before, paths == ["new.py", "old.py"]))
            before = module.fired(root)
            for command in (["git", "status"], ["git", "diff", "main"]):
                subprocess.run(command, cwd=root, check=False, capture_output=True)
            rows[-1] += (module.fired(root) > before,)
    for name, variables in module.VARIABLES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(os.path.realpath(folder)) / "repo"
            program = module.prepare(root)
            environment = {key: value.replace("CANARY", program) for key, value in variables.items()}
            command = [sys.executable, "-m", "deepwork", "review", "--json"]
            completed = subprocess.run(
                command, cwd=root, env={**os.environ, **environment}, capture_output=True, check=False
            )
            tasks = json.loads(completed.stdout or "{}").get("tasks", [])
            paths = sorted(path for task in tasks for path in task["files"])
            rows.append((name, module.fired(root), paths == ["new.py", "old.py"], None))
    print(
        f"hostile git: {len(module.HOSTILE)} configurations and {len(module.VARIABLES)} variables, "
        f"{sum(row[1] > 0 for row in rows)} executed (limit 0), {sum(row[2] for row in rows)} of {len(rows)} right"
    )
    for name, executed, right, live in rows:
        plain = {True: "plain git runs it", False: "plain git does not either", None: "variable"}[live]
        print(f"  {name}: {'EXECUTED' if executed else 'not executed'}, {'right' if right else 'WRONG'} ({plain})")


def names_and_refs(folder: Path) -> None:
    module, hostile_module = of_tests("test_changed"), of_tests("test_hostile")
    root = folder / "names" / "repo"
    hostile_module.prepare(root)
    for name in module.UNUSUAL_NAMES:
        with open(os.path.join(os.fsencode(root), os.fsencode(name)), "w") as file:
            file.write("x")
    plan = anyio.run(partial(make_plan, open_context("review", root)))
    paths = [os.fsencode(path) for review in plan.reviews for path in review.material.files]
    hits = sum(paths.count(os.fsencode(name)) == 1 for name in module.UNUSUAL_NAMES)
    print(f"unusual file names: {hits} of {len(module.UNUSUAL_NAMES)}, each once")
    marks = list(module.test_a_base_that_could_be_an_option_or_more_than_a_commit_is_refused.pytestmark)
    refs = next(mark.args[1] for mark in marks if mark.name == "parametrize")
    refused = 0
    for ref in refs:
        command = [sys.executable, "-m", "deepwork", "review", f"--base-ref={ref}"]
        refused += subprocess.run(command, cwd=root, capture_output=True, check=False).returncode == 1
    print(f"refs that look like options or more: {refused} of {len(refs)} refused")


def replay(folder: Path) -> None:
    """Follow the history of this repository: after each commit, plan the reviews and let all of them pass."""
    root = folder / "replay"
    git(folder, "clone", "-q", str(REPOSITORY), str(root))
    commits = git(root, "rev-list", "--first-parent", "--reverse", "HEAD").decode().split()[-200:]
    rule = "{description: d, match: {include: ['%s']}, review: {strategy: %s, instructions: i}}"
    needed = reviewed = 0
    for commit in commits[1:]:
        git(root, "checkout", "-q", "--detach", commit)
        (root / ".deepreview").write_text(
            f"code: {rule % ('**/*.py', 'individual')}\ndocs: {rule % ('**/*.md', 'individual')}\n"
            f"packaging: {rule % ('{pyproject.toml,tox.ini,Makefile}', 'matches_together')}\n"
        )
        context = open_context("review", root)
        plan = anyio.run(partial(make_plan, context, base_ref=commits[0]))
        plan.issue()
        for review in plan.pending:
            plan.folder.mark(review.identity.review_id, "replay", None)
        needed, reviewed = needed + len(plan.reviews), reviewed + len(plan.pending)
        (root / ".deepreview").unlink()
    print(
        f"replay of {len(commits) - 1} commits: {needed} reviews needed, {reviewed} done, {needed - reviewed} avoided "
        f"({(needed - reviewed) / max(1, needed):.0%})"
    )


def main(names: list[str]) -> None:
    """Print the figures of these names, or all."""
    logging.disable()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(os.path.realpath(place))
        for name in ("config", "state"):
            os.environ[f"XDG_{name.upper()}_HOME"] = str(folder / name)
        figures = {
            "globs": globs,
            "loops": partial(loops, folder),
            "names": partial(names_and_refs, folder),
            "hostile": hostile,
            "replay": partial(replay, folder),
            "big": partial(anyio.run, big, folder),
            "soundness": soundness,
        }
        for name in names or figures:
            figures[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
