"""What `deepwork doctor` says of the database."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from deepwork.api import Check, DeepWorkError, Finding, Level, PluginContext
from deepwork_sql.address import VARIABLE, Address, choose_address
from deepwork_sql.settings import AskedSettings, without_password


def check(context: PluginContext) -> Check:
    """Make the check `sql`."""
    return Check("sql", partial(_examine, context))


def _examine(context: PluginContext) -> Iterator[Finding]:
    asked = context.settings(AskedSettings).database_url
    if asked != without_password(asked):
        yield Finding(
            Level.WARNING,
            "plugins.settings.sql.database_url has a password, which everybody who can read the file can use",
            f"put it into ~/.pgpass or into {VARIABLE}",
        )
    address = choose_address(context)
    if not address.is_made:
        yield Finding(Level.OK, f"{address.shown}, which the first use makes")
        return
    try:
        yield _state(address, str(context.project_root))
    except DeepWorkError as error:
        yield Finding(Level.ERROR, f"{address.shown}: {error.message}", error.hint)


def _state(address: Address, project: str) -> Finding:
    """Look at the database; only its users bring it up to date."""
    from deepwork_sql.inspection import look

    found, counts = look(address, project)
    outdated = ", ".join(state.installed.schema.name for state in found if state.is_outdated)
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
