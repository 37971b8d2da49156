"""`deepwork store` and `deepwork events`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import click
from anyio import to_thread

from deepwork.api import open_context, project_at
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import say, say_json
from deepwork.errors import ConfigError
from deepwork.text import quoted_lines, visible
from deepwork_sql import database
from deepwork_sql.address import VARIABLE, choose_address
from deepwork_sql.adopting import Source, find_source
from deepwork_sql.adopting import adopt as adopt_database
from deepwork_sql.copying import copy_sessions
from deepwork_sql.events import Event, as_mapping
from deepwork_sql.inspection import check_database, describe
from deepwork_sql.places import Place

_PAGE = 1000
LOOK_SECONDS = 1.0


@click.group(epilog="Example: deepwork store copy --from json --to sql")
def store() -> None:
    """Look after the database: bring it up to date, check it, copy sessions."""


@store.command()
@path_option
def migrate(root: str) -> None:
    """Bring the tables of all plugins up to date.

    The first use of the database does the same, unless plugins.settings.sql.migrate is false.
    """
    for line in anyio.run(_migrate, root):
        say(line)


@store.command()
@path_option
@json_option
def info(root: str, *, as_json: bool) -> None:
    """Show which database this project uses, and what is in it."""
    facts = anyio.run(describe, root)
    if as_json:
        say_json(facts)
        return
    for name, value in facts.items():
        say(f"{name:12} {value if isinstance(value, str | int) else json.dumps(value)}")


@store.command()
@path_option
@json_option
def check(root: str, *, as_json: bool) -> int:
    """Check whether the database is in order.

    That is whether it is whole, its tables fit this release, and every session can be read.
    """
    problems = anyio.run(check_database, root)
    if as_json:
        say_json({"ok": not problems, "problems": problems})
    for problem in [] if as_json else problems:
        say(problem)
    if not (problems or as_json):
        say("The database is in order.", err=True)
    return int(bool(problems))


@store.command()
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A database file, or the folder where the project was (default: .deepwork/data/deepwork.db).",
)
@click.option("--yes", is_flag=True, help="Ask nothing.")
@path_option
def adopt(root: str, source: Path | None, *, yes: bool) -> None:
    """Use a database that lies elsewhere.

    It may be that of a repository that was moved or copied, of another machine, or a backup.

    A file in .deepwork/data that you have not made is not opened unasked, because a repository could have brought it.
    """
    context = open_context("sql", root)
    place = choose_address(context).target
    if not isinstance(place, Place):
        raise ConfigError(
            f"a URL says which database this project uses: {choose_address(context).shown}",
            hint=f"Unset {VARIABLE} and plugins.settings.sql.database_url, or use the tools of that database.",
        )
    origin = find_source(source, context.environment) if source else Source(place.old.path)
    if not yes:
        click.confirm(visible(f"Is {origin.file} your own, and has no repository brought it?"), abort=True, err=True)
    former = adopt_database(origin, place, context.project_root)
    say(f"{place.file} is used from now on.", err=True)
    if former:
        say(f"What was used until now is kept in {former}", err=True)


@store.command()
@click.option("--from", "source", required=True, metavar="STORE", help="Copy the sessions of this state store.")
@click.option("--to", "target", required=True, metavar="STORE", help="Copy them into this one.")
@path_option
@json_option
def copy(source: str, target: str, root: str, *, as_json: bool) -> int:
    """Copy the sessions of this project to another state store.

    Each is compared with its copy. What is there already is left as it is, so an interrupted copy can be started again.
    Archived and damaged sessions are not copied, but named.
    """
    report = anyio.run(copy_sessions, root, source, target)
    if as_json:
        say_json(report._asdict())
        return report.exit_code
    for line in report.lines():
        say(line)
    return report.exit_code


@click.command(epilog="Example: deepwork events --follow --json --source core")
@path_option
@click.option("--follow", is_flag=True, help="Go on with new events until interrupted.")
@json_option
@click.option("--since", metavar="ID", help="Only events after the one with this id.")
@click.option("--source", metavar="PLUGIN", help="Only events of this plugin.")
@click.option("--for", "agent_id", metavar="AGENT", help="Print what waits for this agent instead.")
@click.option("--serve", is_flag=True, help="Serve the feed, and other applications of plugins, over HTTP instead.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="With --serve: listen here.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="With --serve: 0 takes a free one."
)
@click.option(
    "--allowed-host", "allowed_hosts", multiple=True, metavar="NAME", help="With --serve: a name of this server."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --serve: lines NAME TOKEN, who may call.",
)
def events(
    root: str,
    since: str | None,
    source: str | None,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    token_file: Path | None,
    agent_id: str | None,
    *,
    follow: bool,
    as_json: bool,
    serve: bool,
) -> None:
    """Print the event feed of the database, from its oldest event.

    With --for it is what the hooks of its client would tell an agent; printing it marks nothing as read. With --follow
    a program can wait for it, and then let a client go on whose agent has ended its turn.

    With --json one object a line. Over HTTP the feed is a WebSocket: /plugins/sql/events?since=ID&source=NAME
    """
    if serve:
        # FastMCP, which this imports, would otherwise be imported for every command of every plugin.
        from deepwork.server.apps import serve_apps

        _show_log()
        serve_apps(root, host=host, port=port, allowed_hosts=allowed_hosts, token_file=token_file)
        return
    if agent_id:
        anyio.run(_print_texts, root, agent_id, follow, as_json)
        return
    anyio.run(_print_events, root, since, source, follow, _json_line if as_json else _text_line)


async def _print_texts(root: str, agent_id: str, follow: bool, as_json: bool) -> None:  # noqa: FBT001 - as below
    """Print each text that waits for an agent once, in the order in which hooks hand them over."""
    project = project_at(root)
    printed: set[str] = set()
    try:
        while True:
            for message in [message for mail in project.agent_mail() for message in await mail.unread(agent_id)]:
                if message.id not in printed:
                    data = {name: getattr(message, name) for name in ("id", "about", "text", "answer")}
                    text = quoted_lines(message.text) if message.text else message.answer
                    click.echo(json.dumps(data) if as_json else f"[{message.id}] {message.about}\n{text}".rstrip())
                printed.add(message.id)
            if not follow:
                return
            await anyio.sleep(LOOK_SECONDS)
    finally:
        await project.close()


def _show_log() -> None:
    """Print what the server logs, such as its address; commands print warnings only."""
    if logging.lastResort:
        logging.lastResort.setLevel(logging.INFO)
    logging.getLogger("deepwork").setLevel(logging.INFO)


async def _print_events(
    root: str,
    since: str | None,
    source: str | None,
    follow: bool,  # noqa: FBT001 - anyio.run passes positions only
    line_of: Callable[[Event], str],
) -> None:
    async with open_context("sql", root) as context:
        feed = await database(context)
        if follow:
            async with aclosing(feed.follow(since, source=source)) as followed:
                async for event in followed:
                    click.echo(line_of(event))
            return
        while page := await feed.feed(since, limit=_PAGE, source=source):
            for event in page:
                click.echo(line_of(event))
            since = page[-1].id


def _json_line(event: Event) -> str:
    return json.dumps(as_mapping(event))


def _text_line(event: Event) -> str:
    at = datetime.fromtimestamp(event.at / 1000, UTC).isoformat(timespec="milliseconds")
    data: Any = json.dumps(event.data, ensure_ascii=False)
    place, who = event.workflow_id or "-", f"by {event.principal or '-'}"
    return visible(f"{event.id}  {at}  {event.source}  {event.event}  {place}  {who}  {data}")


async def _migrate(root: str) -> list[str]:
    """Bring the tables up to date, for any setting of `migrate`, and return which were not."""
    from deepwork_sql.opening import migrate_address

    context = open_context("sql", root)
    return await to_thread.run_sync(migrate_address, choose_address(context))
