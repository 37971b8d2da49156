"""Gates that cannot fail are told from honest ones, and proofs of gates are killed; projects stay as they are."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import click
from report import Progress, Report, seed_option

sys.path.append(str(Path(__file__).parents[2] / "tests" / "builtin" / "proofs" / "corpus"))
from instances import kill, measure
from kinds import HONEST, VACUOUS


@click.command()
@click.option("--instances", default=20, show_default=True, help="How many of each kind, with other words and numbers.")
@click.option("--kills", default=0, show_default=True, help="How many proofs to kill.")
@click.option("--only", default="", help="Only kinds with these words in their names.")
@seed_option
def proofs(instances: int, kills: int, only: str, seed: int) -> None:
    """Judge a corpus of gates, and kill proofs: projects stay as they are, and nothing is left behind."""
    report = Report(f"proofs: {instances} instances of each kind of gate, {kills} kills, seed {seed}")
    remains: list[str] = []
    vacuous = _judged(VACUOUS, instances, only, seed, remains)
    honest = _judged(HONEST, instances, only, seed, remains)
    recognised = (vacuous[result] for result in ("cannot_fail", "proved/presence", "not_provable"))
    report.fact("gates that cannot fail, recognised", f"{sum(recognised)} of {vacuous.total()}")
    report.fact("honest gates", honest.total())
    report.fact("  not provable", honest["not_provable"])
    report.fact("  whose work was refused before any proof", honest["refused"])
    report.promise("honest gates that are said to be unable to fail", honest["cannot_fail"])
    report.promise("changed projects, left files, mounts or processes", remains)
    if kills:
        report.promise("of them after a kill", _killed(report, kills, seed))
    report.finish()


def _judged(kinds: list[Any], instances: int, only: str, seed: int, remains: list[str]) -> Counter[str]:
    """Have the instances of kinds judged, and count the results."""
    counts = Counter[str]()
    for kind in kinds:
        if only not in kind.name:
            continue
        random = Random(f"{seed} {kind.name}")
        answers = [measure(kind, random) for _ in range(instances)]
        results = Counter(result for result, _, _ in answers)
        reasons = {why[:100] for result, why, _ in answers if why and result in ("not_provable", "refused")}
        print(f"{kind.name:40} {dict(results)}", *sorted(reasons), sep="  ", file=sys.stderr, flush=True)
        remains += [f"{kind.name}: {text}" for _, _, text in answers if text]
        counts += results
    return counts


def _killed(report: Report, count: int, seed: int) -> list[str]:
    """Kill so many proofs of all kinds in turn, and return what they leave."""
    kinds, random, progress = [*HONEST, *VACUOUS], Random(f"{seed} kills"), Progress("kills", count)
    killed, remains = 0, []
    for number in range(3 * count):
        kind = kinds[number % len(kinds)]
        is_running, text = kill(kind, random)
        remains += [f"{kind.name}: {text}"] if text else []
        if is_running:
            killed += 1
            progress.step()
        if killed == count:
            break
    report.fact("proofs killed while they ran", killed)
    return remains
