"""What `deepwork doctor` says of the database."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

import anyio

from deepwork.api import Check, DeepWorkError, Finding, Level, PluginContext
from deepwork_sql.address import VARIABLE, choose_address
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
    path = urlsplit(address.shown).path[1:]
    if address.dialect == "sqlite" and not anyio.run(anyio.Path(path).exists):
        yield Finding(Level.OK, f"{address.shown}, which the first use makes")
        return
    try:
        facts = anyio.run(_facts, str(context.project_root))
    except DeepWorkError as error:
        yield Finding(Level.ERROR, f"{address.shown}: {error.message}", error.hint)
        return
    yield Finding(
        Level.OK, f"{facts['database']}: {facts['sessions']} sessions of this project, {facts['events']} events"
    )


async def _facts(root: str) -> dict[str, object]:
    from deepwork_sql.inspection import describe

    return await describe(root)
