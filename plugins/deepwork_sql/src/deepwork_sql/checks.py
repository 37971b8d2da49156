"""What `deepwork doctor` says of the database."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from deepwork.api import Check, Finding, Level, PluginContext
from deepwork.errors import DeepWorkError
from deepwork_sql.address import VARIABLE, Address, choose_address
from deepwork_sql.places import Place, moved_text, unused_text
from deepwork_sql.server_url import ServerUrl
from deepwork_sql.settings import AskedSettings


def check(context: PluginContext) -> Check:
    """Make the check `sql`."""
    return Check("sql", partial(_examine, context))


def _examine(context: PluginContext) -> Iterator[Finding]:
    server = ServerUrl.parse(context.settings(AskedSettings).database_url)
    if server and server.has_secret:
        yield Finding(
            Level.WARNING,
            "plugins.settings.sql.database_url has a password, which everybody who can read the file can use",
            f"put it into ~/.pgpass or into {VARIABLE}",
        )
    address = choose_address(context)
    try:
        if isinstance(address.target, Place):
            yield from _place(address.target)
        elif not address.is_made:
            yield Finding(Level.OK, f"{address.shown}, which the first use makes")
        if address.file is None or address.file.exists():
            yield _state(address, str(context.project_root))
    except DeepWorkError as error:
        yield Finding(Level.ERROR, f"{address.shown}: {error.message}", error.hint)


def _place(place: Place) -> Iterator[Finding]:
    """Tell where a database is yet to be made or moved to, and name what is not opened."""
    old, file = place.old, place.file
    if old.exists and not old.is_own:
        yield Finding(
            Level.WARNING,
            f"{old.path} was not made by you on this machine, so it is not opened: a repository could have brought it",
            "if it is yours, `deepwork store adopt` uses it; else remove it",
        )
    if before := place.moved_from():
        yield Finding(Level.WARNING, moved_text(before))
    if file.exists():
        if old.is_own:
            yield Finding(Level.WARNING, unused_text(place))
        return
    place.make_folders()
    if old.is_own:
        old.check_beside()
        yield Finding(Level.OK, f"{old.path}, which the next start moves to {file}")
    else:
        yield Finding(Level.OK, f"sqlite:///{file}, which the first use makes")


def _state(address: Address, project: str) -> Finding:
    """Return the state of the database; only its users bring it up to date."""
    from deepwork_sql.opening import look

    states, counts = look(address, project)
    outdated = ", ".join(state.installed.schema.name for state in states if state.is_outdated)
    if not outdated:
        return Finding(
            Level.OK, f"{address.shown}: {counts['sessions']} sessions of this project, {counts['events']} events"
        )
    if address.migrate:
        return Finding(Level.OK, f"{address.shown}: the first use brings the tables of {outdated} up to date")
    return Finding(
        Level.ERROR,
        f"{address.shown}: the tables of {outdated} are older than this release, and `migrate` is false",
        "run `deepwork store migrate` once",
    )
