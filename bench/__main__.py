"""`python -m bench`: measure contestants against FLOOR, and against each other."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from bench.authoring import measure_authoring
from bench.calls import measure_flight, measure_http, measure_steps
from bench.claims import measure_claims
from bench.client import ContestantError, Era
from bench.contestants import OURS, Contestant, Launcher
from bench.databases import on_databases
from bench.imports import measure_imports
from bench.machine import IN_MEMORY, facts, file_system, load
from bench.measure import Run, Sizes
from bench.ours import measure_orchestration, measure_tokens
from bench.release import earlier, keep_as_release
from bench.report import FORMAT, Results, lines, results, slower, write_report
from bench.scale import measure_crowd, measure_growth, measure_listing, measure_sessions
from bench.start import measure_memory, measure_start

EARLIER = "0.9.3"
GROUPS: dict[str, Callable[[Run], None]] = {
    "start": measure_start,
    "steps": measure_steps,
    "flight": measure_flight,
    "http": measure_http,
    "listing": measure_listing,
    "crowd": measure_crowd,
    "sessions": measure_sessions,
    "memory": measure_memory,
    "growth": measure_growth,
    "imports": measure_imports,
}
# These are of this project alone, without other contestants, and are measured only when they are named.
OURS_ALONE: dict[str, Callable[[Run], None]] = {
    "tokens": measure_tokens,
    "orchestration": measure_orchestration,
    "authoring": measure_authoring,
    "claims": measure_claims,
}
ROUNDS, QUICK_ROUNDS = 10, 3
RESERVED = ("FLOOR",)


class ContestantType(click.ParamType[Contestant]):
    """`NAME=COMMAND`."""

    name = "NAME=COMMAND"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Contestant:
        """Split at the first `=`."""
        name, _, command = str(value).partition("=")
        if not (name and command) or "/" in name:
            self.fail(f"{value!r} is not NAME=COMMAND", param, ctx)
        if name in RESERVED:
            self.fail(f"{name} is always measured; choose another name", param, ctx)
        return Contestant(name, command)


@click.command(
    epilog="Example: python -m bench 'core=deepwork serve --path {project} --tools core' --figures start,steps"
)
@click.argument("contestants", nargs=-1, type=ContestantType())
@click.option("--figures", metavar="NAME[,NAME…]", help=f"Measure only these of: {', '.join([*GROUPS, *OURS_ALONE])}.")
@click.option("--rounds", type=click.IntRange(1), help=f"How often each is measured (default: {ROUNDS}).")
@click.option("--quick", is_flag=True, help=f"Small projects and {QUICK_ROUNDS} rounds: to see that it works.")
@click.option(
    "--era",
    type=click.Choice([era.value for era in Era]),
    default=Era.STATELESS.value,
    show_default=True,
    help="The revision of MCP to speak.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Make the projects in here; it has to be on a disk (default: the system's folder for temporary files).",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write a page there.")
@click.option("--release", metavar="VERSION", help=f"Measure an earlier release too, such as {EARLIER}.")
@click.option("--keep-as", metavar="NAME", help="Keep the ratios in bench/last_release.json, as those of this release.")
@click.option("--check", is_flag=True, help="Fail if a ratio of processor time is much larger than the recorded one.")
@click.option(
    "--from-json",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure nothing; show what an earlier run has written with --json.",
)
def main(
    contestants: tuple[Contestant, ...],
    figures: str | None,
    rounds: int | None,
    quick: bool,  # noqa: FBT001 - click gives flags as they were typed
    era: str,
    folder: Path | None,
    json_file: Path | None,
    report: Path | None,
    release: str | None,
    keep_as: str | None,
    check: bool,  # noqa: FBT001 - click gives flags as they were typed
    from_json: Path | None,
) -> None:
    """Measure MCP servers side by side, and show ratios with their spread.

    CONTESTANTS are servers, each NAME=COMMAND. In a command {project} stands for the folder of a project; with {port}
    in it the server is spoken to over HTTP. Without any, this project's server is measured with all installed plugins,
    without them, and over HTTP. FLOOR, a minimal FastMCP server, is always among them. Servers without the tools of
    this project are only started and ended.

    A goal that is missed is shown as missed. The exit code is 1 only when something could not be measured, or with
    --check when the server has become much slower.
    """
    if sys.platform != "linux":
        raise click.ClickException("processes are looked into by /proc, so this needs Linux")
    if from_json:
        measurements = _earlier(from_json)
    else:
        order = Order([*(contestants or OURS)], _chosen(figures), rounds, Era(era), folder, quick, release)
        try:
            measurements = _measure(order)
        except ContestantError as error:
            raise click.ClickException(str(error)) from None
    click.echo("\n".join(lines(measurements)))
    if json_file:
        json_file.write_text(json.dumps(measurements, indent=2) + "\n")
    if report:
        write_report(measurements, report)
    if keep_as:
        keep_as_release(keep_as, measurements)
    if check and (worse := slower(measurements)):
        raise click.ClickException("the server has become slower\n  " + "\n  ".join(worse))


@dataclass(frozen=True)
class Order:
    """What is to be measured, and how."""

    contestants: list[Contestant]
    figures: list[str]
    rounds: int | None
    era: Era
    folder: Path | None
    quick: bool
    release: str | None


def _measure(order: Order) -> Results:
    names = [contestant.name for contestant in order.contestants]
    if len({*names}) < len(names):
        raise click.UsageError("two contestants have the same name")
    with TemporaryDirectory(prefix="bench-", dir=order.folder) as temporary, ExitStack() as ended:
        place = Path(temporary)
        databases = []
        if order.contestants == [*OURS] and {"steps", "flight"} & {*order.figures}:
            databases = ended.enter_context(on_databases(place))
        machine = facts(place)
        if file_system(place) in IN_MEMORY:
            click.echo(f"{place} lies in memory, where fsync costs nothing; choose another --folder.", err=True)
        run = Run(
            folder=place,
            contestants=[*order.contestants, *(earlier(order.release, place) if order.release else [])],
            launcher=Launcher(place, order.era),
            sizes=Sizes.quick() if order.quick else Sizes(),
            repeats=order.rounds or (QUICK_ROUNDS if order.quick else ROUNDS),
            databases=databases,
        )
        if {*order.figures} & {*GROUPS}:
            run.probe()
        for name in order.figures:
            (GROUPS | OURS_ALONE)[name](run)
        machine["load at the end"] = load()
        return results(run, command=_command(), machine=machine)


def _chosen(figures: str | None) -> list[str]:
    names = [name.strip() for name in figures.split(",")] if figures else [*GROUPS]
    available = [*GROUPS, *OURS_ALONE]
    if unknown := [name for name in names if name not in available]:
        raise click.UsageError(f"there is no figure {unknown[0]!r}; there are {', '.join(available)}")
    return names


def _earlier(file: Path) -> Results:
    try:
        measurements = json.loads(file.read_text())
        if measurements["format"] == FORMAT:
            return dict(measurements)
    except (ValueError, KeyError, TypeError):
        pass
    raise click.ClickException(f"{file} was not written by this release's --json; measure anew")


def _command() -> str:
    """Return the command of this run without its user's files and folders."""
    own = ("--json", "--folder")
    words = [
        word
        for before, word in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
        if before not in own and word.partition("=")[0] not in own
    ]
    return shlex.join(["python", "-m", "bench", *words])


if __name__ == "__main__":
    main(prog_name="python -m bench")
