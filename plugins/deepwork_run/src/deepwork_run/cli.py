"""`deepwork run` and `deepwork runs`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import anyio
import click

from deepwork.api import CorruptSession, PluginContext, Session, ToolCall, Workspace, open_context, open_project
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import say, say_json, say_json_line
from deepwork.errors import ConfigError, DeepWorkError, UnknownName, UnknownSession
from deepwork.ports.agent import Agent, AgentSpec
from deepwork.ports.call import LOCAL
from deepwork.programs.programs import cleaned_path
from deepwork.project.opened import OpenedProject
from deepwork.text import one_line, paused
from deepwork_run.acts import stop_runner
from deepwork_run.display import Display
from deepwork_run.options import OnLimit, Options, seconds_of
from deepwork_run.record import Record, Run, records
from deepwork_run.runner import Agents, Runner
from deepwork_run.settings import RunSettings
from deepwork_run.shown import described, used
from deepwork_run.units import units

PERMISSIONS = ("shell", "network", "all")
# Without `--with`, the first of these that is installed.
DEFAULTS = ("claude", "codex")


class Asked(NamedTuple):
    """What the command line says of a run; the run before and the settings say what it leaves out."""

    agents: tuple[str, ...]
    allow: tuple[str, ...]
    max_time: float | None
    budget_usd: float | None
    on_limit: str | None
    no_wait: bool


def _names(_context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """Split lists at commas."""
    names = [name.strip() for value in values for name in value.split(",")]
    if any(not name for name in names):
        raise click.BadParameter("a name is empty", param=parameter)
    return tuple(dict.fromkeys(names))


def _permissions(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    names = _names(context, parameter, values)
    for name in names:
        if name not in PERMISSIONS:
            raise click.BadParameter(f"{name!r} is none of: {', '.join(PERMISSIONS)}", param=parameter)
    return names


def _seconds(_context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    seconds = None if value is None else seconds_of(value)
    if value is not None and seconds is None:
        raise click.BadParameter(f"{value!r} is no time such as 90s, 30m or 8h", param=parameter)
    return seconds


@click.command(epilog="Example: deepwork run project_tour --goal 'for newcomers' --with claude,codex")
@click.argument("job", required=False)
@click.argument("workflow", required=False)
@click.option("--goal", metavar="TEXT", help="What is wanted.")
@click.option("--continue", "session_id", metavar="SESSION", help="Go on with a session; its beginning is enough.")
@click.option("--with", "names", multiple=True, callback=_names, metavar="AGENT,…", help="Who works, in this order.")
@click.option(
    "--allow",
    multiple=True,
    callback=_permissions,
    metavar="|".join(PERMISSIONS),
    help="What agents may do besides reading and editing files of the project.",
)
@click.option("--max-time", callback=_seconds, metavar="TIME", help="How long the run may take: 90s, 30m, 8h.")
@click.option("--budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="What it may cost.")
@click.option(
    "--on-limit",
    type=click.Choice([policy.value for policy in OnLimit]),
    help="At a usage limit: wait, switch agents, or end.",
)
@click.option("--no-wait", is_flag=True, help="End instead of waiting for limits and people.")
@click.option("--print-unit", is_flag=True, help="Print what has systemd or cron go on with SESSION; start nothing.")
@path_option
@json_option
def run(
    job: str | None,
    workflow: str | None,
    goal: str | None,
    session_id: str | None,
    names: tuple[str, ...],
    root: str,
    *,
    print_unit: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Start a workflow, or go on with a session, with one agent after the other until it is complete.

    Agents are started again after usage limits, crashes and full contexts; completed steps are not repeated. Exit
    codes: 0 complete, 1 error, 4 waits for a person, 5 budget or time, 6 no progress, 7 limit, 130 interrupted.
    """
    if bool(job) == bool(session_id):
        raise click.UsageError("Name a JOB to start, or a session: --continue SESSION.")
    if job and not (goal and goal.strip()):
        raise click.UsageError("Missing option '--goal': say what is wanted.")
    if session_id and goal:
        raise click.UsageError("'--goal' is for a new session; the one to go on with has its own.")
    if print_unit and not session_id:
        raise click.UsageError("'--print-unit' needs a session: --continue SESSION.")

    async def work() -> int:
        async with open_project("run", root) as project:
            session = await _session(project, session_id) if session_id else None
            remembered = Record(project.context.workspace, session.session_id).read() if session else Run("")
            options = _options(project, remembered, Asked(names, **chosen))
            agents = await _agents(project, options)
            if session and print_unit:
                click.echo(_unit(project.context, session, options), nl=False)
                return 0
            if session is None:
                started = await project.engine.start(
                    ToolCall(), goal=goal or "", job_name=job or "", workflow_name=workflow or ""
                )
                session = await _session(project, started.begin_step.session_id)
            record = Record(project.context.workspace, session.session_id)
            display = Display()
            display.log(f"Session {session.session_id} of {session.workflow}; goal: {one_line(session.goal)}")
            for line in _remarks(agents, options):
                display.log(line)
            code = await Runner(project, record, agents, options, display).run()
            session = await _session(project, session.session_id)
            _tell_end(session, record, code, as_json=as_json)
            return code

    return _alone(work)


def _alone(work: Callable[[], Any]) -> int:
    """Run in an event loop, and give the errors of its task groups as themselves."""
    try:
        return int(anyio.run(work))
    except ExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


async def _session(project: OpenedProject, beginning: str) -> Session:
    """Return a session that a worker on stdio may go on with.

    Raises:
        UnknownSession: It does not exist, or has another principal.
    """
    session = await project.session(beginning)
    if session.principal != LOCAL:
        raise UnknownSession(
            f"Session {session.session_id!r} is of the principal {session.principal!r}; agents on this machine are "
            f"{LOCAL!r}, so none may go on with it"
        )
    return session


def _options(project: OpenedProject, remembered: Run, asked: Asked) -> Options:
    """Join what was asked, what the last run of the session was asked, and the settings.

    What agents may do is never remembered: the record is in the project, whose files are not trusted.
    """
    before = remembered.options
    names = before.get("with")
    known = sorted(filter(names.__contains__, project.agents), key=names.index) if isinstance(names, list) else ()
    chosen = asked.agents or tuple(known)
    policy = before.get("on_limit") if not asked.agents and before.get("on_limit") in [*OnLimit] else None
    settings = project.context.settings(RunSettings)
    return Options(
        agents=chosen,
        allow=frozenset(asked.allow) or frozenset(settings.allow),
        max_seconds=asked.max_time or _number(before.get("max_seconds")),
        budget_usd=asked.budget_usd or _number(before.get("budget_usd")),
        on_limit=OnLimit(asked.on_limit or policy or ("switch" if len(chosen) > 1 else "wait")),
        waits=not asked.no_wait,
    )


def _number(value: Any) -> float | None:
    """Return a number above zero; None for anything else that stands in a record."""
    return float(value) if isinstance(value, int | float) and value > 0 else None


async def _agents(project: OpenedProject, options: Options) -> Agents:
    """Make the agents of a run. Each has to be there before anything is started.

    Raises:
        UnknownName: No plugin offers an agent.
        ConfigError: One cannot be started here.
    """
    missing: dict[str, str] = {}
    agents: dict[str, tuple[AgentSpec, Agent]] = {}
    for name in options.agents or DEFAULTS:
        if name not in project.agents:
            available = ", ".join(project.agents)
            raise UnknownName(f"no agent {name!r} (from --with); available: {available}", hint="Choose one of these.")
        spec = project.agents[name]
        agent = spec.create()
        reason = await agent.available()
        if reason is None:
            agents[name] = spec, agent
            if not options.agents:
                break
        else:
            missing[name] = reason
    if missing and (options.agents or not agents):
        problems = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise ConfigError(f"{problems}. Nothing was started", hint="Install it, or choose another one: --with AGENT.")
    return agents


def _remarks(agents: Agents, options: Options) -> list[str]:
    """Return what users should know before it begins."""
    silent = [name for name, (spec, _) in agents.items() if not spec.says_dollars]
    if options.budget_usd is None or not silent:
        return []
    bound = "--max-time bounds it" if options.max_seconds else "nothing bounds it: --max-time would"
    return [f"{' and '.join(silent)} never says what it costs, so --budget-usd does not count there; {bound}."]


def _unit(context: PluginContext, session: Session, options: Options) -> str:
    """Return what goes on with a session by itself.

    It finds programs as this process does: systemd and cron have a PATH of their own, without folders of a home.
    """
    root = str(context.project_root)
    script = os.path.join(os.path.dirname(sys.executable), "deepwork")
    command = [script, "run", "--continue", session.session_id, *_words(options), "--path", root]
    about = f"Goes on with {session.workflow}, session {session.session_id}"
    return units(command, root, about, cleaned_path(context.environment, context.project_root))


def _words(options: Options) -> list[str]:
    """Return the options of a run as they are written."""
    words = ["--with", ",".join(options.agents)] if options.agents else []
    words += ["--allow", ",".join(sorted(options.allow))] if options.allow else []
    words += ["--max-time", f"{options.max_seconds:g}s"] if options.max_seconds else []
    words += ["--budget-usd", f"{options.budget_usd:g}"] if options.budget_usd else []
    return [*words, "--on-limit", options.on_limit.value, *(() if options.waits else ("--no-wait",))]


def _tell_end(session: Session, record: Record, code: int, *, as_json: bool) -> None:
    about = described(session, record)
    if as_json:
        say_json_line({**about, "exit_code": code})
        return
    cost = about["totals"]["cost_usd"]
    spent = f"  ${cost:.2f}" if cost is not None else ""
    say(f"{session.status}  {session.session_id}  {session.workflow}  {about['position']}{spent}")
    if session.is_active:
        say(f"To go on: deepwork run --continue {session.session_id}", err=True)


@click.group(invoke_without_command=True, epilog="Example: deepwork runs log 3f2a  (the beginning of an id is enough)")
@path_option
@json_option
@click.pass_context
def runs(context: click.Context, root: str, *, as_json: bool) -> None:
    """List, show and stop runs, and print what their agents have printed."""
    if context.invoked_subcommand is None:
        _list(root, as_json=as_json)


@runs.command("list")
@path_option
@json_option
def list_runs(root: str, *, as_json: bool) -> None:
    """List the runs of this project, the last changed first."""
    _list(root, as_json=as_json)


def _list(root: str, *, as_json: bool) -> None:
    async def read() -> list[dict[str, Any]]:
        async with open_project("run", root) as project:
            return [await _described(project, record) for record in records(project.context.workspace)]

    described_runs = anyio.run(read)
    if as_json:
        say_json({"runs": described_runs})
        return
    for about in described_runs:
        say(_line(about))
    if not described_runs:
        say("No runs.", err=True)


async def _described(project: OpenedProject, record: Record) -> dict[str, Any]:
    """Return what is known of a run; of a session that is damaged, only that."""
    session = None
    with suppress(CorruptSession):
        session = await (await project.engine.sessions.store()).load(record.session_id)
    return described(session, record)


def _line(about: Mapping[str, Any]) -> str:
    totals = about["totals"]
    cost = f"${totals['cost_usd']:.2f}" if totals["cost_usd"] is not None else ""
    wait = about["waiting"]
    is_waiting = wait and about["state"] not in ("running", "paused")
    waits = paused(wait["until"], wait["cause"], datetime.now(UTC)) if is_waiting else ""
    parts = [about["state"], about["workflow"] or "", about["position"], about["agent"] or "", cost, waits]
    return "  ".join([about["session_id"], *filter(None, parts)])


@runs.command()
@click.argument("session_id")
@path_option
@json_option
def show(session_id: str, root: str, *, as_json: bool) -> None:
    """Show one run: its agents, what each has done, and what it has used."""

    async def read() -> dict[str, Any]:
        async with open_project("run", root) as project:
            return await _described(project, _record(project.context.workspace, session_id))

    about = anyio.run(read)
    if as_json:
        say_json(about)
        return
    say(_line(about))
    for worker in about["workers"]:
        hooks = "" if worker["hooks"] else "  (without hooks)"
        end = f"{worker['ended_at']}  {worker['end']}" if worker["ended_at"] else "did not end by itself"
        say(f"  {worker['number']}  {worker['agent']}{hooks}  {worker['started_at']}  {end}")
    for name, totals in about["agents"].items():
        say(f"  {name}: {used(totals)}")
    if about["paused"]:
        say(f"  asks: {about['paused']['what']}")


@runs.command()
@click.argument("session_id")
@path_option
@json_option
def stop(session_id: str, root: str, *, as_json: bool) -> None:
    """Stop a run: its agent finishes the call that it makes."""
    record = _record(open_context("run", root).workspace, session_id)
    pid = stop_runner(record)
    if as_json:
        say_json({"session_id": record.session_id, "runner": pid})
    else:
        say(f"Process {pid} stops.")


@runs.command()
@click.argument("session_id")
@click.option("--worker", type=click.IntRange(1), metavar="N", help="Which agent of the run (default: the last one).")
@path_option
@json_option
def log(session_id: str, worker: int | None, root: str, *, as_json: bool) -> None:
    """Print what an agent's program has printed, as it came."""
    record = _record(open_context("run", root).workspace, session_id)
    numbers = [known.number for known in record.read().workers]
    number = worker or max(numbers, default=0)
    content = record.transcript_of(number)
    if content is None:
        raise DeepWorkError(f"There is no transcript of worker {number} of session {record.session_id}")
    lines = content.decode("utf-8", "replace").splitlines()
    if as_json:
        say_json({"session_id": record.session_id, "worker": number, "lines": lines})
        return
    for line in lines:
        say(line)


def _record(workspace: Workspace, beginning: str) -> Record:
    """Return the run of the session whose id begins like this.

    Raises:
        UnknownSession: No session does, or more than one.
    """
    listed = [record for record in records(workspace) if record.session_id.startswith(beginning)]
    exact = [record for record in listed if record.session_id == beginning] or listed
    if len(exact) == 1 and beginning:
        return exact[0]
    problem = f"is the beginning of {len(listed)} ids" if listed else "was never run here"
    raise UnknownSession(f"Session {beginning!r} {problem}", hint="`deepwork runs` lists all runs.")
