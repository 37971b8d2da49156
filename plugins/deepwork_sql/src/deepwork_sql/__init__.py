"""State in a database: the library that other plugins use. Importing it imports no SQLAlchemy.

database = await deepwork_sql.database(context)
task = await database.write(lambda transaction: claim(transaction, task_id))
"""

from __future__ import annotations

from deepwork.api import PluginContext
from deepwork_sql.access import Database
from deepwork_sql.errors import DatabaseError, LeaseLost, RequestConflict, UnstorableText
from deepwork_sql.events import Event, EventFilter, Viewer
from deepwork_sql.ids import new_id
from deepwork_sql.requests import Answer
from deepwork_sql.text import check_json, check_text
from deepwork_sql.transaction import Transaction

__all__ = [
    "Answer",
    "Database",
    "DatabaseError",
    "Event",
    "EventFilter",
    "LeaseLost",
    "RequestConflict",
    "Transaction",
    "UnstorableText",
    "Viewer",
    "check_json",
    "check_text",
    "database",
    "has_database",
    "new_id",
]

PLUGIN = "sql"


async def database(context: PluginContext) -> Database:
    """Return the database of this server, opened and migrated at its first use; all plugins share it.

    Args:
        context: The context of any plugin.

    Raises:
        ConfigError: The settings of the plugin `sql` name no database that can be used.
        DatabaseError: It does not answer, or a newer release has changed it.
    """
    from deepwork_sql.address import choose_address
    from deepwork_sql.opening import open_database

    own_context = context.of(PLUGIN)
    return await context.shared("deepwork_sql.database", lambda: open_database(choose_address(own_context)))


def has_database(context: PluginContext) -> bool:
    """True if there is a database already: a reader need not make one.

    Args:
        context: The context of any plugin.

    Raises:
        ConfigError: The settings of the plugin `sql` name no database that can be used.
    """
    from deepwork_sql.address import choose_address

    return choose_address(context.of(PLUGIN)).is_made
