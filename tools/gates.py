"""Measure how gates that cannot fail are told from honest ones, on the corpus of `tests/gate/corpus`.

    .venv/bin/python tools/gates.py [--instances N] [--only WORDS] [--json]

Each instance is a project of its own, which is compared byte for byte before and after.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from deepwork.testing import output, review, step
from deepwork.testing.project import DeepworkProject

ROOT = Path(__file__).parents[1]
WORDS = ("apples", "bridges", "clouds", "deserts", "engines", "forests", "gardens", "harbours")
# What gates write beside the work by themselves, with the work as it is, is theirs.
OWN = (".deepwork", "__pycache__", ".pytest_cache", "build", "out.xml", "golden.md")


def kinds() -> Any:
    """Return the module of the corpus."""
    spec = importlib.util.spec_from_file_location("kinds", ROOT / "tests/gate/corpus/kinds.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["kinds"] = module
    spec.loader.exec_module(module)
    return module


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
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"HOME": str(home), "PATH": tools, "TMPDIR": str(folder / "tmp"), "LANG": "C.UTF-8"}
    (folder / "tmp").mkdir()
    return project, environment, path


def tree(project: Path) -> dict[str, tuple[bytes, int, int, int]]:
    """Return all of a project that gates must not change."""
    found = {}
    for file in sorted(project.rglob("*")):
        if file.is_file() and not set(file.relative_to(project).parts) & set(OWN):
            status = file.lstat()
            found[str(file)] = (file.read_bytes(), status.st_mtime_ns, status.st_ino, status.st_mode)
    return found


def measure(kind: Any, random: Random) -> tuple[str, str, str]:
    """Return the result of one instance, and what went wrong around it."""
    with tempfile.TemporaryDirectory() as folder:
        project, environment, path = make(kind, Path(folder), random)
        before = tree(project)
        command = [sys.executable, "-m", "deepwork", "gate", "prove", "corpus", "make", "--file", path, "--json"]
        ended = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        try:
            facts = json.loads(ended.stdout)
        except ValueError:
            return "broken", "", ended.stderr[-500:]
        result = facts["result"] or "refused"
        wrong = "" if tree(project) == before else "the project was changed"
        wrong += "" if not [*(Path(folder) / "tmp").iterdir()] else "; something is left among the temporary files"
        return f"{result}/{facts['grade']}" if facts["grade"] else result, facts["reason"], wrong


def main() -> None:
    """Measure all kinds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=34)
    options = parser.parse_args()
    corpus = kinds()
    sums: dict[str, Counter[str]] = {}
    for name, group in (("vacuous", corpus.VACUOUS), ("honest", corpus.HONEST)):
        total: Counter[str] = Counter()
        for kind in group:
            if options.only not in kind.name:
                continue
            random = Random(f"{options.seed} {kind.name}")
            results = [measure(kind, random) for _ in range(options.instances)]
            counted = Counter(result for result, _, _ in results)
            total += counted
            wrong = {text for _, _, text in results if text}
            reasons = {why[:100] for result, why, _ in results if why and result == "not_provable"}
            print(f"{name:8} {kind.name:40} {dict(counted)}", *sorted(reasons), *sorted(wrong), sep="  ", flush=True)
        sums[name] = total
    print(json.dumps({name: dict(total) for name, total in sums.items()}))


if __name__ == "__main__":
    main()
