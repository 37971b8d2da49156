"""Instances of the kinds of gates, each a project of its own: what a proof says of one, and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from deepwork.testing import output, review, step
from deepwork.testing.project import DeepworkProject
from deepwork.testing.wire import PATIENCE

WORDS = ("apples", "bridges", "clouds", "deserts", "engines", "forests", "gardens", "harbours")
# What gates write beside the work by themselves, with the work as it is, is theirs.
OWN = (".deepwork", "__pycache__", ".pytest_cache", "build", "out.xml", "golden.md")


def filled(text: str, number: int, word: str) -> str:
    """Return a text of an instance."""
    return text.replace("$$", "\0").replace("$N", str(number)).replace("$W", word).replace("\0", "$")


def make(kind: Any, folder: Path, random: Random) -> tuple[Path, dict[str, str], str]:
    """Write an instance, and return the environment in which commands run in it."""
    number, word = random.randrange(3, 400), random.choice(WORDS)
    project = folder / "project"
    path, content = kind.work
    files: dict[str, str] = {path: filled(content, number, word)}
    for name, text in kind.beside.items():
        files[name] = filled(text, number, word)
    if files.get("sum") == "SHA256":
        files["sum"] = hashlib.sha256(files[path].encode()).hexdigest()
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    outputs = {"work": output()}
    DeepworkProject(project).write_job("corpus", [step("make", outputs=outputs, reviews=[review()])])
    home = folder / "home"
    config = home / ".config/deepwork/config.yml"
    config.parent.mkdir(parents=True)
    command = {"run": ["sh", "-c", filled(kind.run, number, word)], "verdict": "exit_code", "folder": kind.folder}
    config.write_text(json.dumps({"quality_gate": {"runner": "gate", "commands": {"gate": command}}}))
    if kind.venv:
        make_venv(project)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"HOME": str(home), "PATH": tools, "TMPDIR": str(folder / "tmp"), "LANG": "C.UTF-8"}
    (folder / "tmp").mkdir()
    return project, environment, path


def make_venv(project: Path) -> None:
    """Make a virtual environment in which `src` is installed as editable, and which has what tests need."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    [packages] = project.glob(".venv/lib/python*/site-packages")
    packages.joinpath("editable.pth").write_text(f"{project}/src\n{sysconfig.get_path('purelib')}\n")


def tree(project: Path) -> dict[str, tuple[bytes, int, int, int]]:
    """Return all of a project that gates must not change."""
    files = {}
    for file in sorted(project.rglob("*")):
        if file.is_file() and not set(file.relative_to(project).parts) & set(OWN):
            status = file.lstat()
            files[str(file)] = (file.read_bytes(), status.st_mtime_ns, status.st_ino, status.st_mode)
    return files


def command_of(path: str) -> list[str]:
    """Return the command that tries the gate of an instance."""
    return [sys.executable, "-m", "deepwork", "gate", "prove", "corpus", "make", "--file", path, "--json"]


def measure(kind: Any, random: Random) -> tuple[str, str, str]:
    """Return the result of one instance, why, and what went wrong around it."""
    with tempfile.TemporaryDirectory() as folder:
        project, environment, path = make(kind, Path(folder), random)
        before = tree(project)
        ended = subprocess.run(
            command_of(path), cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        remains = left(Path(folder), before)
        try:
            facts = json.loads(ended.stdout)
        except ValueError:
            return "broken", "", ended.stderr[-500:] or "it printed nothing"
        result = facts["result"] or "refused"
        return f"{result}/{facts['grade']}" if facts["grade"] else result, facts["reason"], remains


def left(folder: Path, before: dict[str, tuple[bytes, int, int, int]]) -> str:
    """Return what is left of a proof: changes of the project, files, mounts and processes."""
    findings = []
    deadline = time.monotonic() + PATIENCE
    while (running := processes(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if running:
        findings.append(f"{len(running)} processes run on: {running[0]}")
    if tree(folder / "project") != before:
        findings.append("the project was changed")
    if [*(folder / "tmp").iterdir()]:
        findings.append("something is left among the temporary files")
    if str(folder) in Path("/proc/mounts").read_text():
        findings.append("something is mounted")
    return "; ".join(findings)


def processes(folder: Path) -> list[str]:
    """Return the processes whose temporary files lie there."""
    mark = f"TMPDIR={folder}/".encode()
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in process.joinpath("environ").read_bytes():
                commands.append(process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return commands


def kill(kind: Any, random: Random) -> tuple[bool, str]:
    """Kill a proof at a random moment after its first counterfactual has begun.

    Returns whether it still ran then, and what is left of it after the next server has started.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = folder / "runs"
        slow = replace(kind, run=f"echo x >> {runs}; sleep 0.1; {kind.run}")
        project, environment, path = make(slow, folder, random)
        before = tree(project)
        proof = subprocess.Popen(
            command_of(path), cwd=project, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while proof.poll() is None and (not runs.exists() or runs.read_text().count("x") < 2):
            time.sleep(0.01)
        time.sleep(random.random() * 0.5)
        is_running = proof.poll() is None
        proof.kill()
        proof.wait()
        deadline = time.monotonic() + PATIENCE
        while processes(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        serve = [sys.executable, "-m", "deepwork", "serve"]
        subprocess.run(
            serve, cwd=project, env=environment, input=b"", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False, timeout=120,
        )  # fmt: skip
        return is_running, left(folder, before)
